"""`anvil deps`: documentation of a project's dependencies at their locked versions"""
