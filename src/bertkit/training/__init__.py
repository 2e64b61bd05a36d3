"""Training: the loop, optimizers, schedules, precision, several processes, and what a step costs."""
