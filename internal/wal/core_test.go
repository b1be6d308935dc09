package wal_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/recordbatch"
	"github.com/lakestream-go/lakestream/internal/shard"
	"github.com/lakestream-go/lakestream/internal/wal"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// TestCoreTranscripts plays the events of each transcript and compares what the
// core wants done after each with the indented lines below it.
func TestCoreTranscripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "core", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			got := play(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(want), got)
		})
	}
}

// script is the state of one transcript: what it has named so far.
type script struct {
	t       *testing.T
	core    *wal.Core
	config  wal.CoreConfig
	appends map[string]*wal.Append
	names   map[*wal.Append]string
	objects []*wal.Object
	heads   map[base.LogID]base.Offset
	rev     base.Revision
}

func play(t *testing.T, text string) string {
	s := &script{
		t: t, appends: map[string]*wal.Append{}, names: map[*wal.Append]string{}, heads: map[base.LogID]base.Offset{},
		config: wal.CoreConfig{MaxObjectBytes: 1000, EagerBytes: 500, UploadConcurrency: 2},
	}
	var out strings.Builder
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "  ") {
			continue // what happened last time
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		s.event(strings.Fields(line))
		if s.core == nil {
			continue
		}
		for _, action := range s.core.Take(nil) {
			fmt.Fprintln(&out, "  "+s.describe(action))
		}
	}
	return out.String()
}

// event plays one line. Objects are numbered by their first upload, from 1.
func (s *script) event(words []string) {
	number := func(i int) (n uint64) {
		_, err := fmt.Sscan(words[i], &n)
		require.NoError(s.t, err, words)
		return n
	}
	if s.core == nil && words[0] != "config" {
		s.core = wal.NewCore(s.config)
	}
	switch words[0] {
	case "config": // config idle
		s.config.FlushWhenIdle = true
	case "append": // append NAME BYTES LOG…
		s.append(words[1], int(number(2)), words[3:]) //nolint:gosec // small
	case "urgent":
		s.append(words[1], int(number(2)), append(words[3:], "!")) //nolint:gosec // small
	case "settled":
		s.core.Settled(number(1))
	case "lingered":
		s.core.Lingered(number(1))
	case "flush":
		s.core.Flush()
	case "opened": // opened WRITER
		s.core.WriterOpened(base.WriterID(number(1)))
	case "closed": // closed WRITER
		s.core.WriterClosed(base.WriterID(number(1)))
	case "uploaded": // uploaded OBJECT WRITER
		o := s.objects[number(1)-1]
		_, err := o.Build(&wal.Form{Alignment: 1}, base.WriterID(number(2)), 1, nil)
		require.NoError(s.t, err)
		s.core.Uploaded(o, base.WriterID(number(2)))
	case "put": // put OBJECT
		s.core.CommitPut(s.objects[number(1)-1])
	case "outcome": // outcome OBJECT WRITER SEQ REASON…
		s.outcome(number(1), base.WriterID(number(2)), base.Seq(number(3)), strings.Join(words[4:], " "))
	case "recalled": // recalled WRITER SEQ [closed] LOG:BASE…
		s.recalled(base.WriterID(number(1)), base.Seq(number(2)), words[3:])
	case "fail":
		s.core.Fail(errors.New("the view stopped"))
	default:
		s.t.Fatalf("no such event: %v", words)
	}
}

// append adds records that are bounded by size bytes, spread over the logs.
func (s *script) append(name string, size int, logs []string) {
	batch := wal.Batch{}
	if logs[len(logs)-1] == "!" {
		batch.Urgent, logs = true, logs[:len(logs)-1]
	}
	for _, log := range logs {
		overhead := recordbatch.EncodedBound(&recordbatch.Record{})
		var partition base.Partition
		_, err := fmt.Sscan(log, &partition)
		require.NoError(s.t, err)
		batch.Logs = append(batch.Logs, wal.LogRecords{
			Log:     base.LogID{Stream: 1, Partition: partition},
			Records: []recordbatch.Record{{Value: make([]byte, size/len(logs)-overhead)}},
		})
	}
	a, err := wal.Encode(&batch, 1<<20)
	require.NoError(s.t, err)
	s.appends[name], s.names[a] = a, name
	s.core.Add(a)
}

// outcome folds an object's record: the logs grow, or refuse for a reason.
func (s *script) outcome(object uint64, writer base.WriterID, seq base.Seq, reason string) {
	s.rev++
	out := shard.Outcome{Revision: s.rev, Writer: writer, Seq: seq}
	if whole, ok := strings.CutPrefix(reason, "all: "); ok {
		out.Rejected = shard.Reason(whole)
		s.core.Outcome(&out)
		return
	}
	record := s.objects[object-1].Record(writer, seq)
	for i := range record.GetStream() {
		id := base.LogID{Stream: 1, Partition: base.Partition(record.GetPartition()[i])} //nolint:gosec // small
		l := shard.LogOutcome{Log: id, Base: s.heads[id], Records: int(record.GetRecords()[i])}
		if reason != "" && i == 0 { // the first log refuses
			l.Rejected = shard.Reason(reason)
		} else {
			s.heads[id] += base.Offset(l.Records)
		}
		out.Logs = append(out.Logs, l)
	}
	s.core.Outcome(&out)
}

// recalled brings what the view still tells of a writer after it went on from a
// checkpoint.
func (s *script) recalled(writer base.WriterID, seq base.Seq, logs []string) {
	s.rev++
	out := shard.Outcome{Revision: s.rev, Writer: writer, Seq: seq, Recalled: true}
	if len(logs) > 0 && logs[0] == "closed" {
		out.Rejected, logs = shard.WriterClosed, logs[1:]
	}
	for _, log := range logs {
		l := shard.LogOutcome{Log: base.LogID{Stream: 1}}
		_, err := fmt.Sscanf(log, "%d:%d", &l.Log.Partition, &l.Base)
		require.NoError(s.t, err)
		out.Logs = append(out.Logs, l)
	}
	s.core.Outcome(&out)
}

func (s *script) describe(action wal.Action) string {
	switch action.Kind {
	case wal.OpenWriter:
		return "open writer"
	case wal.Upload:
		return fmt.Sprintf("upload %d as %d/%d", s.number(action.Object), action.Writer, action.Seq)
	case wal.Commit:
		return fmt.Sprintf("commit %d as %d/%d", s.number(action.Object), action.Writer, action.Seq)
	case wal.Settle:
		return fmt.Sprintf("settle %d", action.Ordinal)
	case wal.Linger:
		return fmt.Sprintf("linger %d", action.Ordinal)
	case wal.Release:
		return fmt.Sprintf("release %d", s.number(action.Object))
	case wal.Resolve:
		return fmt.Sprintf("resolve %s:%s", s.names[action.Append], results(action.Append))
	default:
		return fmt.Sprintf("kind %d", action.Kind)
	}
}

func (s *script) number(o *wal.Object) int {
	for i := range s.objects {
		if s.objects[i] == o {
			return i + 1
		}
	}
	s.objects = append(s.objects, o)
	return len(s.objects)
}

func results(a *wal.Append) string {
	var out strings.Builder
	for _, r := range a.Results() {
		switch {
		case errors.Is(r.Err, base.ErrUnknown):
			fmt.Fprintf(&out, " unknown (%v)", r.Err)
		case r.Err != nil:
			fmt.Fprintf(&out, " refused (%v)", r.Err)
		default:
			fmt.Fprintf(&out, " %d+%d@%d", r.Base, r.Records, r.Revision)
		}
	}
	return out.String()
}
