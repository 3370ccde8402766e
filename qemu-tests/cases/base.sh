# What every cloud image must do, baked or not.
# boot: grow 2G
# boot: expect vmbake-test login:

machine
