"""Building and checking an index in a CI job: what the action, a GitLab job or a shell script calls.

``run`` does the work, ``previous_indexes`` finds earlier indexes, ``pull_request`` the index of the branch that a pull
request is for, and ``kept_folders`` names what is kept between runs. ``summary`` renders the summary, ``annotations``
finds the stale lines, ``hosts`` writes to the runner or the terminal, and ``program_key`` names the cached
installation.
"""
