package trainer
