package inference
