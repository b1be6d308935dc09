// Package plugin registers Lakestream's components with Benthos: an output that
// appends messages to streams and an input that reads them. Import it for its
// effect:
//
//	import _ "github.com/lakestream-go/lakestream/plugin"
//
// Components of one process that name one cluster share one engine; it closes,
// draining its tables, when the last of them does. Options come from the
// component's own engine object or from the process's top-level block, see package
// config.
//
// The output acknowledges what is durable. The input delivers at least once: what
// is rejected is read from the log again. Neither parses a message's content.
package plugin
