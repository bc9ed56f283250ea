"""Building and checking an index in a CI job: what the action, a GitLab job or a shell script calls.

``running`` does the work, ``summary`` renders what people read, ``hosts`` speaks to whatever runs the job.
"""
