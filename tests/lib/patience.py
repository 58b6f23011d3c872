"""patience - how long whoever waits for something in a test waits before it is taken to be broken.

The only such bound: it is there for what hangs, and says nothing about how fast anything is."""
PATIENCE_S = 300
