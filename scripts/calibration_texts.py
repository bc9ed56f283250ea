# ruff: noqa: RUF001
"""Texts that show the converter what activations look like: prose, code, tables, data,
several languages, odd input.

They only steer how 8-bit steps are shared out between channels; no vector contains them. Written for
this purpose.
"""

TEXTS = (
    "How do I roll back a release?",
    "error",
    "install",
    """# Getting started

Install the command line tool, then run `harbor init` in the root of your repository. It writes a small
configuration file with sensible defaults. You can change every setting later. If the command is not found,
check that the folder of your scripts is on the `PATH`, and open a new terminal. On Windows, use PowerShell 7
or later.

> **Note:** the first run downloads nothing. It reads your pages and writes one file.""",
    """## Authentication

Requests carry a bearer token in the `Authorization` header. Tokens expire after one hour; a refresh token
lasts thirty days. The server answers `401 Unauthorized` when the signature does not match and `403 Forbidden`
when the scope is too narrow. Rotate keys with `harborctl keys rotate --grace 24h`, which keeps the old key
valid until every replica has seen the new one. See [Scopes](./scopes.md#write) and [Rate
limits](/reference/limits).""",
    """| option | type | default | description |
|---|---|---|---|
| `max_retries` | int | 3 | how often a failed call is tried again |
| `timeout` | float | 30.0 | seconds, per attempt |
| `verify_tls` | bool | true | `false` only for tests |
| `labels` | map | {} | added to every metric |""",
    '''class Cache(Generic[K, V]):
    """Least recently used, bounded by weight."""

    def __init__(self, limit: int = 1 << 20, *, weigh: Callable[[V], int] = len) -> None:
        self._items: OrderedDict[K, V] = OrderedDict()
        self._weight, self._limit, self._weigh = 0, limit, weigh

    def get(self, key: K, default: V | None = None) -> V | None:
        if key not in self._items:
            return default
        self._items.move_to_end(key)
        return self._items[key]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))''',
    """export async function loadConfig(path = './site.config.ts'): Promise<UserConfig> {
  const module = await import(pathToFileURL(resolve(path)).href)
  return { base: '/', outDir: 'dist', ...module.default }
}
// rules: [{ test: /\\.vue$/, use: 'vue-loader' }],""",
    """{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
 "spec": {"replicas": 3, "template": {"spec": {"containers": [{"image": "registry.example.com/web:1.27.3",
 "ports": [{"containerPort": 8080}], "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}}}]}}}}""",
    """```bash
curl -sSL https://get.example.org/install.sh | sh -s -- --version v2.4.1
kubectl -n prod get pods -l app=web -o jsonpath='{.items[*].metadata.name}'
for f in *.tar.gz; do sha256sum "$f" >> SHA256SUMS; done
```""",
    """Die Konfiguration wird beim Start einmal gelesen. Änderungen werden erst nach einem Neustart
wirksam, außer bei den Schlüsseln unter „Protokollierung“. Fehlt eine Pflichtangabe, bricht das Programm mit
einer verständlichen Meldung ab und nennt die Zeile der Datei.""",
    """安装完成后，在项目根目录运行初始化命令，它会生成一个配置文件。所有选项都有合理的默认值，
您可以随时修改。如果遇到权限错误，请检查当前用户是否拥有写入权限。更多信息请参阅用户指南。""",
    "設定ファイルを編集した後、サービスを再起動してください。ログは標準エラー出力に書き込まれます。",
    "Перед обновлением сделайте резервную копию базы данных и убедитесь, что на диске достаточно места.",
    "La instalación falla si el puerto ya está en uso; cámbielo en la configuración y vuelva a intentarlo.",
    """Traceback (most recent call last):
  File "/srv/app/worker.py", line 218, in run
    raise TimeoutError(f"no answer from {host}:{port} after {elapsed:.1f}s")
TimeoutError: no answer from 10.0.0.7:5432 after 30.0s""",
    "1.2.0 2024-03-18 0x7fff5fbff8c0 192.168.0.1 3.14159 1e-9 1024 65535 99.95% $12.50 2 4 8 16 32 64",
    "a | b | c | d | e | f | g | ----- ===== ***** ..... !!!!! ????? ((((( ))))) [[[ ]]] {{{ }}} <<< >>>",
    "the the the the the the the the and and and and and and of of of of of of to to to to to to",
    """Scientists compared two schedules of watering over a dry summer. Plants that were given a little every
day grew shallow roots and wilted within hours of a missed turn, while those watered deeply once a week
reached further down and lasted. The authors advise gardeners to water less often and longer, early in the
morning, when less evaporates.""",
    "😀 🎉 🚀 ✅ ❌ → ← ↑ ↓ • · – — “ ” ‘ ’ … © ® ™ € £ ¥ § ¶",
    "",
)
