package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/redpanda-data/benthos/v4/public/components/io"
	_ "github.com/redpanda-data/benthos/v4/public/components/pure"
	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/config"
	"github.com/lakestream-go/lakestream/engine"
)

// patience bounds waits for what must happen; no test passes by waiting for it.
const patience = 60 * time.Second

// lake is an engine's directory of a test's own, and the YAML that names it.
type lake struct{ dir string }

func newLake(t testing.TB) lake { return lake{dir: t.TempDir()} }

// engine is the component's object: no tables, unless more says otherwise.
func (l lake) engine(more string) string {
	if more == "" {
		more = ", compaction: { enabled: false }"
	}
	return fmt.Sprintf("engine: { data_dir: %q%s }", l.dir, more)
}

func (l lake) output(t testing.TB, fields string) *output {
	t.Helper()
	conf, err := config.OutputSpec().ParseYAML(fields+"\n"+l.engine(""), nil)
	require.NoError(t, err)
	parsed, err := config.ParseOutput(conf)
	require.NoError(t, err)
	return newOutput(parsed, nil, engine.SystemClock{})
}

func (l lake) input(t testing.TB, fields string) *input {
	t.Helper()
	conf, err := config.InputSpec().ParseYAML(fields+"\n"+l.engine(""), nil)
	require.NoError(t, err)
	parsed, err := config.ParseInput(conf)
	require.NoError(t, err)
	return newInput(parsed, nil, engine.SystemClock{})
}

// connectOutput returns a connected output that the test closes at its end.
func (l lake) connectOutput(t testing.TB, fields string) *output {
	t.Helper()
	o := l.output(t, fields)
	require.NoError(t, o.Connect(context.Background()))
	t.Cleanup(func() { require.NoError(t, o.Close(context.Background())) })
	return o
}

func (l lake) connectInput(t testing.TB, fields string) *input {
	t.Helper()
	in := l.input(t, fields)
	require.NoError(t, in.Connect(context.Background()))
	t.Cleanup(func() { require.NoError(t, in.Close(context.Background())) })
	return in
}

// texts makes messages of these contents.
func texts(contents ...string) service.MessageBatch {
	batch := make(service.MessageBatch, len(contents))
	for i, text := range contents {
		batch[i] = service.NewMessage([]byte(text))
	}
	return batch
}

// numbered makes messages "from", "from+1", …
func numbered(from, n int) service.MessageBatch {
	batch := make(service.MessageBatch, n)
	for i := range batch {
		batch[i] = service.NewMessage(fmt.Appendf(nil, "%d", from+i))
	}
	return batch
}

func content(t testing.TB, m *service.Message) string {
	t.Helper()
	text, err := m.AsBytes()
	require.NoError(t, err)
	return string(text)
}

func meta(m *service.Message, key string) any {
	value, ok := m.MetaGetMut(key)
	if !ok {
		return nil
	}
	return value
}

// cause returns what Benthos is told to wait for.
func cause(t testing.TB, err error) error {
	t.Helper()
	var pause *service.ErrBackOff
	require.ErrorAs(t, err, &pause, "what never heals is not tried in a hurry")
	return pause.Err
}

// drain reads to the input's end, accepting everything.
func drain(t testing.TB, in *input) (all []*service.Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		batch, ack, err := in.ReadBatch(ctx)
		if errors.Is(err, service.ErrEndOfInput) {
			return all
		}
		require.NoError(t, err)
		require.NotEmpty(t, batch)
		require.NoError(t, ack(ctx, nil))
		all = append(all, batch...)
	}
}

// readAll reads everything that a selection holds.
func (l lake) readAll(t testing.TB, selection string) []*service.Message {
	t.Helper()
	in := l.input(t, fmt.Sprintf("streams: [ %q ]\nstop_at_end: true", selection))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, in.Connect(ctx))
	all := drain(t, in)
	require.NoError(t, in.Close(ctx))
	return all
}

// contents returns what messages contain, in their order.
func contents(t testing.TB, messages []*service.Message) []string {
	t.Helper()
	all := make([]string, len(messages))
	for i, m := range messages {
		all[i] = content(t, m)
	}
	return all
}

// pipeline runs a whole pipeline to its end and returns what it logged.
func pipeline(t *testing.T, yaml string) string {
	t.Helper()
	logged := &logCapture{}
	builder := service.NewStreamBuilder()
	require.NoError(t, builder.SetYAML(yaml))
	builder.SetPrintLogger(logged)
	stream, err := builder.Build()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, stream.Run(ctx))
	return logged.String()
}

// logCapture implements service.PrintLogger.
type logCapture struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *logCapture) Printf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, format, v...)
}

func (l *logCapture) Println(v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, v...)
}

func (l *logCapture) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// outputOf returns an output of a configuration that names its engine.
func outputOf(t testing.TB, yaml string) *output {
	t.Helper()
	conf, err := config.OutputSpec().ParseYAML(yaml, nil)
	require.NoError(t, err)
	parsed, err := config.ParseOutput(conf)
	require.NoError(t, err)
	return newOutput(parsed, nil, engine.SystemClock{})
}
