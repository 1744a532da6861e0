"""Reports: runs, sweeps and campaigns as one page to look at, in a file or served while training goes on."""
