"""Python and npm packages as data: installed, in a registry, in an archive. No code of them is run"""
