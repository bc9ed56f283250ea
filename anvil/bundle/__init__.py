"""The documentation inside a package: a folder of Markdown for agents that have only files: `anvil bundle`"""
