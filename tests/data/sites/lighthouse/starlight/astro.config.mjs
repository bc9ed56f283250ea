import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'

export default defineConfig({
  site: 'https://lighthouse.example',
  base: '/handbook',
  integrations: [
    starlight({
      title: 'Lighthouse',
      editLink: { baseUrl: 'https://github.com/example/lighthouse/edit/main/' },
      locales: { root: { label: 'English', lang: 'en' }, de: { label: 'Deutsch', lang: 'de' } },
      pagefind: false,
    }),
  ],
})
