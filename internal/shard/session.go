package shard

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord"
	"github.com/lakestream-go/lakestream/internal/format/commitrecord/commitpb"
)

// Publisher publishes a record and returns its outcome; View is one.
type Publisher interface {
	Publish(ctx context.Context, payload commitrecord.Payload) (Outcome, error)
}

// ErrSessionLost says that a session cannot go on: its writer was closed, or it no
// longer knows which seq comes next. Open another.
var ErrSessionLost = errors.New("the writer session is lost")

// Session is a writer that publishes one record at a time. It is not safe for
// concurrent use.
type Session struct {
	publisher Publisher
	writer    base.WriterID
	next      base.Seq
	lost      bool
}

// OpenSession opens a writer for the process that lives under the lease instance.
func OpenSession(ctx context.Context, publisher Publisher, instance string, entropy io.Reader) (*Session, error) {
	token := make([]byte, tokenBytes)
	if _, err := io.ReadFull(entropy, token); err != nil {
		return nil, fmt.Errorf("opening writer: %w", err)
	}
	out, err := publisher.Publish(ctx, &commitpb.WriterOpen{Token: token, Instance: instance})
	if err != nil {
		return nil, fmt.Errorf("opening writer: %w", err)
	}
	if !out.OK() {
		return nil, fmt.Errorf("opening writer: %s: %w", out.Rejected, base.ErrUnavailable)
	}
	return &Session{publisher: publisher, writer: out.Writer, next: 1}, nil
}

// Writer returns the session's writer.
func (s *Session) Writer() base.WriterID { return s.writer }

// Next returns the seq that the next published record must carry.
func (s *Session) Next() base.Seq { return s.next }

// Publish publishes a record that carries Writer and Next. An outcome that
// rejects parts of it is no error. After any error the session is lost.
func (s *Session) Publish(ctx context.Context, payload commitrecord.Payload) (Outcome, error) {
	if s.lost {
		return Outcome{}, ErrSessionLost
	}
	out, err := s.publisher.Publish(ctx, payload)
	if err != nil {
		s.lost = true
		return Outcome{}, err
	}
	if out.Rejected == WriterClosed {
		s.lost = true
		return out, fmt.Errorf("publishing %s: %w: %w", out.Kind, ErrSessionLost, base.ErrFenced)
	}
	s.next++
	return out, nil
}

// Close fences the writer, so that what it left unpublished can be told to be an
// orphan. A writer that is closed already is no error.
func (s *Session) Close(ctx context.Context) error {
	s.lost = true
	_, err := s.publisher.Publish(ctx, &commitpb.WriterFence{Writers: []uint64{uint64(s.writer)}})
	if err != nil {
		return fmt.Errorf("closing writer %d: %w", s.writer, err)
	}
	return nil
}
