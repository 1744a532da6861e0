"""Tuning: arguments of an algorithm drawn by Optuna, each drawing trained as a job, poor ones stopped early."""
