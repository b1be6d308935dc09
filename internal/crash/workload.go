package crash

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/lakestream-go/lakestream/engine"
	"github.com/lakestream-go/lakestream/internal/base"
)

const (
	// maxBatch bounds the records of one append.
	maxBatch = 20
	// keys is how many different keys there are; each belongs to a partition.
	keys = 50
	// undecodableEvery is how often a payload cannot become a row.
	undecodableEvery = 9
	// undecodablePrefix starts such a payload; what follows is the attempt.
	undecodablePrefix = "{not JSON "
)

// attempts makes the records of one appender. Every record ever made has a name of
// its own, so that one which is in the log twice was appended twice.
type attempts struct {
	prefix string
	life   string
	n      int
	random *rand.Rand
	// sent is the newest sequence by stream.
	sent map[string]base.ProducerSeq
}

func newAttempts(life string, appender int) *attempts {
	return &attempts{
		prefix: fmt.Sprintf("%s-%d", life, appender), life: life, sent: make(map[string]base.ProducerSeq),
		random: rand.New(rand.NewPCG(uint64(appender), uint64(len(life)))), //nolint:gosec // shapes a test's data
	}
}

// next fills a batch with new records and returns their names, those of batch.Logs[i]
// as the i-th element, in the order of the records.
func (a *attempts) next(batch *engine.Batch, partitions int) (names [][]string) {
	batch.Logs = batch.Logs[:0]
	for range 1 + a.random.IntN(maxBatch) {
		a.n++
		name := fmt.Sprintf("%s-%d", a.prefix, a.n)
		key := fmt.Appendf(nil, "key-%d", a.random.IntN(keys))
		p := engine.Partition(engine.KeyPartition(key, partitions)) //nolint:gosec // a stream's partitions are few
		at := slices.IndexFunc(batch.Logs, func(l engine.LogRecords) bool { return l.Log.Partition == p })
		if at < 0 {
			at = len(batch.Logs)
			batch.Logs = append(batch.Logs, engine.LogRecords{})
			batch.Logs[at].Log.Partition = p
			names = append(names, nil)
		}
		batch.Logs[at].Records = append(batch.Logs[at].Records, engine.Record{
			Timestamp: engine.Millis(1_750_000_000_000 + a.n), Key: key, Value: a.payload(name),
		})
		names[at] = append(names[at], name)
	}
	return names
}

// identify numbers the records of a batch as what this producer sends to a stream. A
// batch has the same numbers whenever it is made.
func (a *attempts) identify(batch *engine.Batch, stream string) {
	for i := range batch.Logs {
		l := &batch.Logs[i]
		l.Producer, l.Sequences = a.prefix, nil
		for range l.Records {
			a.sent[stream]++
			l.Sequences = append(l.Sequences, a.sent[stream])
		}
	}
}

// payload is what a record carries: mostly an object, with a column that only this
// life writes, so that each life lets the table's schema grow.
func (a *attempts) payload(name string) []byte {
	if a.n%undecodableEvery == 0 {
		return []byte(undecodablePrefix + name)
	}
	return fmt.Appendf(nil, `{"attempt":%q,"n":%d,"text":%q,"amount":%d.25,"life":{"%s":%d}}`,
		name, a.n, strings.Repeat("x", a.random.IntN(100)), a.random.IntN(1000), a.life, a.n)
}

// attemptOf returns the name of the attempt that a payload belongs to, and whether
// the payload can become a row.
func attemptOf(payload []byte) (name string, decodable bool, err error) {
	if name, ok := strings.CutPrefix(string(payload), undecodablePrefix); ok {
		return name, false, nil
	}
	var row struct {
		Attempt string `json:"attempt"`
	}
	if err := json.Unmarshal(payload, &row); err != nil {
		return "", false, fmt.Errorf("reading payload %q: %w", payload, err)
	}
	return row.Attempt, true, nil
}
