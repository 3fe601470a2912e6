"""What this project costs, each figure beside what a user would pick instead, measured in the same run."""
