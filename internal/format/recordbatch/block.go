package recordbatch

import (
	"iter"
	"slices"

	"github.com/lakestream-go/lakestream/internal/base"
)

// joinBytes is what a record can grow by when it is moved to another place in a
// batch: its length, time delta and offset delta become longer.
const joinBytes = 3 * maxVarintBytes

// BlockBound returns a number of bytes that AppendBlock does not exceed for
// these runs: room to reserve so that the block is not moved while it grows.
func BlockBound(runs iter.Seq[Run]) int {
	n := 0
	for run := range runs {
		n += HeaderBytes + len(run.Data) + run.Records*joinBytes
	}
	return n
}

// AppendBlock appends the records of runs as a block: batches of about
// TargetBytes, base offsets from 0. Neighbouring runs share a batch where they
// fit; a run that nearly fills one is copied as it is. It allocates only when
// dst is too small. A batch that compression does not make smaller is stored
// uncompressed.
func AppendBlock(dst []byte, runs iter.Seq[Run], compression Compression) []byte {
	w := blockWriter{dst: dst, compression: compression}
	for run := range runs {
		if w.info.Records > 0 && len(w.dst)-w.start-HeaderBytes+len(run.Data) > TargetBytes {
			w.close()
		}
		w.add(run)
	}
	if w.info.Records > 0 {
		w.close()
	}
	return w.dst
}

// blockWriter builds a block batch by batch at the end of dst.
type blockWriter struct {
	dst         []byte
	compression Compression
	start       int       // where the open batch starts in dst
	info        BatchInfo // of the open batch; Records is 0 when none is open
	next        base.Offset
}

// add puts a run at the end of the open batch, opening one if there is none.
func (w *blockWriter) add(run Run) {
	if w.info.Records == 0 {
		w.start = len(w.dst)
		w.dst = slices.Grow(w.dst, HeaderBytes+len(run.Data))
		w.dst = append(w.dst[:w.start+HeaderBytes], run.Data...)
		w.info = BatchInfo{Base: w.next, BaseTime: run.BaseTime, MaxTime: run.MaxTime, Records: run.Records}
		return
	}
	w.dst = appendMoved(w.dst, run, w.info.Records, int64(run.BaseTime-w.info.BaseTime))
	w.info.MaxTime = max(w.info.MaxTime, run.MaxTime)
	w.info.Records += run.Records
}

// close compresses the open batch if that pays and writes its header.
func (w *blockWriter) close() {
	if w.compression == Zstd {
		w.compress()
	}
	putHeader(w.dst[w.start:], w.info)
	w.next += base.Offset(w.info.Records)
	w.info = BatchInfo{}
}

func (w *blockWriter) compress() {
	records := w.dst[w.start+HeaderBytes:]
	packed := compressZstd(records)
	if len(packed.data) < len(records) {
		w.dst = append(w.dst[:w.start+HeaderBytes], packed.data...)
		w.info.Compression = Zstd
	}
	packed.release()
}

// appendMoved appends the records of a run to a batch that already holds shift
// records and whose base time lies timeShift before the run's: it rewrites each
// record's length and deltas and copies the rest.
func appendMoved(dst []byte, run Run, shift int, timeShift int64) []byte {
	dst = slices.Grow(dst, len(run.Data)+run.Records*joinBytes)
	s := scanner{data: run.Data}
	for i := range run.Records {
		end := s.varint()
		end += int64(s.pos)
		s.pos++ // attributes
		timeDelta := s.varint() + timeShift
		s.varint() // the old offset delta
		rest := run.Data[s.pos:end]
		s.pos = int(end)
		body := 1 + varintBytes(timeDelta) + varintBytes(int64(shift+i)) + len(rest)
		p := len(dst)
		dst = dst[:p+varintBytes(int64(body))+body]
		p += putVarint(dst[p:], int64(body))
		dst[p] = 0 // attributes
		p++
		p += putVarint(dst[p:], timeDelta)
		p += putVarint(dst[p:], int64(shift+i))
		copy(dst[p:], rest)
	}
	return dst
}
