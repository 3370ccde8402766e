def rights(judge):
    pass
