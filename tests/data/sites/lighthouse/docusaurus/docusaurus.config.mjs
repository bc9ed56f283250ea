import rehypeKatex from 'rehype-katex'
import remarkMath from 'remark-math'

export default {
  title: 'Lighthouse',
  url: 'https://lighthouse.example',
  baseUrl: '/handbook/',
  onBrokenLinks: 'throw',
  presets: [['classic', {
    blog: { showReadingTime: true },
    docs: {
      routeBasePath: '/',
      editUrl: 'https://github.com/example/lighthouse/edit/main/',
      lastVersion: 'current',
      remarkPlugins: [remarkMath],
      rehypePlugins: [rehypeKatex],
      versions: { current: { label: '2.0' } },
    },
  }]],
}
