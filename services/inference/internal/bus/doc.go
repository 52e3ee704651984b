// Package bus answers predictions and starts training runs for producers that speak NATS instead of HTTP. It forwards
// each message to the inference service or the control plane and replies with their answer.
package bus
