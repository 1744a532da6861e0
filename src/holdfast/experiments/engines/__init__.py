"""Where jobs are run: in processes of this machine, or on a Ray cluster."""
