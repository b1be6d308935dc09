// Package outage tests views and writers over a cluster of real NATS servers that
// stop, come back and are cut off from each other. It holds no code of its own.
package outage
