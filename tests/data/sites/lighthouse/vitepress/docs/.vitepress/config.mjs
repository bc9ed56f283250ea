import footnote from 'markdown-it-footnote'

export default {
  title: 'Lighthouse',
  base: '/handbook/',
  sitemap: { hostname: 'https://lighthouse.example/handbook/' },
  lastUpdated: true,
  locales: { root: { label: 'English', lang: 'en' }, de: { label: 'Deutsch', lang: 'de' } },
  markdown: { lineNumbers: true, math: true, config: (md) => md.use(footnote) },
  themeConfig: {
    editLink: { pattern: 'https://github.com/example/lighthouse/edit/main/docs/:path' },
    sidebar: [{ text: 'Handbook', items: [{ text: 'The lamp', link: '/guide/lamp' }, { text: 'Charts', link: '/charts' }] }],
  },
}
