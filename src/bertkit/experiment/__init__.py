"""One experiment from start to finish, one file a kind: build, fit, save, predict, score, report."""
