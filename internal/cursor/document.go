package cursor

import (
	"encoding/json"
	"fmt"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/coord"
)

// Limits of one cursor. Its document then stays below what coordination takes.
const (
	// MaxAcks is the most ranges after the mark that may be consumed.
	MaxAcks = 4096
	// MaxProperties and MaxPropertyBytes bound the properties of a mark; a
	// name and its value together are one property.
	MaxProperties    = 32
	MaxPropertyBytes = 4 << 10
)

// documentVersion is the version of the documents of cursors and groups that this
// code writes. It refuses a newer one.
const documentVersion = 1

// document is a cursor as it is stored, in JSON.
type document struct {
	Version int `json:"version"`
	// Next is the first offset that is not consumed: the mark and one. A
	// cursor that never had a mark has none.
	Next *base.Offset `json:"next,omitempty"`
	// Acks are ranges [start, end) after Next that are consumed.
	Acks       [][2]base.Offset  `json:"acks,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	// Owner is the session that may change the document, and Generation the
	// one of its group that made it the owner. No owner means that the last
	// one let go.
	Owner      string        `json:"owner,omitempty"`
	Generation base.Revision `json:"generation,omitempty"`
	// Stalled says that the owner waits for a batch for too long.
	Stalled bool `json:"stalled,omitempty"`
	// Time is when the document was written, by its writer's clock.
	Time base.Millis `json:"time_ms"`
}

func (d *document) encode() ([]byte, error) {
	d.Version = documentVersion
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encoding cursor: %w", err)
	}
	return data, coord.CheckData(data, coord.MaxRecordBytes)
}

// decodeDocument reads what encode wrote. Bytes that no cursor has are ErrCorrupt,
// those of a newer version ErrNewerFormat.
func decodeDocument(data []byte) (document, error) {
	var d document
	if err := decodeJSON(data, &d, func() int { return d.Version }); err != nil {
		return document{}, fmt.Errorf("decoding cursor: %w", err)
	}
	if err := d.check(); err != nil {
		return document{}, fmt.Errorf("decoding cursor: %w", base.WithClass(base.ErrCorrupt, err))
	}
	return d, nil
}

// decodeJSON reads a document of a known version.
func decodeJSON(data []byte, into any, version func() int) error {
	if err := json.Unmarshal(data, into); err != nil {
		var header struct {
			Version int `json:"version"`
		}
		if json.Unmarshal(data, &header) == nil && header.Version > documentVersion {
			return fmt.Errorf("version %d: %w", header.Version, base.ErrNewerFormat)
		}
		return base.WithClass(base.ErrCorrupt, err)
	}
	switch v := version(); {
	case v > documentVersion:
		return fmt.Errorf("version %d: %w", v, base.ErrNewerFormat)
	case v < documentVersion:
		return fmt.Errorf("version %d: %w", v, base.ErrCorrupt)
	}
	return nil
}

func (d *document) check() error {
	next := base.Offset(-1)
	if d.Next != nil {
		if next = *d.Next; next < 0 {
			return fmt.Errorf("mark before offset %d", next)
		}
	} else if len(d.Acks) > 0 {
		return fmt.Errorf("%d consumed ranges without a mark", len(d.Acks))
	}
	if len(d.Acks) > MaxAcks {
		return fmt.Errorf("%d consumed ranges: the limit is %d", len(d.Acks), MaxAcks)
	}
	for _, a := range d.Acks {
		if a[0] <= next || a[1] <= a[0] {
			return fmt.Errorf("consumed range [%d, %d) after offset %d", a[0], a[1], next)
		}
		next = a[1]
	}
	return checkProperties(d.Properties)
}

func checkProperties(properties map[string]string) error {
	if len(properties) > MaxProperties {
		return fmt.Errorf("%w: %d properties: the limit is %d", base.ErrInvalid, len(properties), MaxProperties)
	}
	for name, value := range properties {
		if n := len(name) + len(value); n > MaxPropertyBytes {
			return fmt.Errorf("%w: property %.40q of %d bytes: the limit is %d", base.ErrInvalid, name, n, MaxPropertyBytes)
		}
	}
	return nil
}
