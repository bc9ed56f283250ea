"""Pages of HTML, made by any site generator, to their content, headings and Markdown"""
