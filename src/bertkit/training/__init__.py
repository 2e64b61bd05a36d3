"""Training: the loop, optimizers, schedules, several processes, and what a step costs."""
