package blob_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lakestream-go/lakestream/internal/blob"
)

// fakeS3 is as much of the S3 protocol as single requests need, with faults.
type fakeS3 struct {
	endpoint string

	mu sync.Mutex
	// objects and requests are guarded by mu.
	objects  map[string]string
	requests []string
	// fault, where set, answers a request in place of the server when it returns
	// true. n counts the requests of one method, from 1. It is guarded by mu.
	fault func(w http.ResponseWriter, method string, n int) bool
	// lost, where it returns true, drops the answer of a request that was served.
	lost func(method string, n int) bool
}

// startFakeS3 opens a store over a fake server.
func startFakeS3(t *testing.T) (*fakeS3, blob.Store) {
	t.Helper()
	fake := &fakeS3{objects: make(map[string]string)}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	fake.endpoint = server.URL
	store, err := blob.Open(t.Context(), "s3://lake/p", blob.Options{Clock: hastyClock{}, Cloud: blob.Cloud{
		Endpoint: server.URL, ForcePathStyleURLs: true, Credentials: blob.Credentials{ID: "me", Secret: "hunter2", Token: "hunter3"},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	fake.take()
	return fake, store
}

// take returns the requests since it was last called.
func (f *fakeS3) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.requests
	f.requests = nil
	return taken
}

// ServeHTTP implements http.Handler.
func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.RequestURI())
	n := 0
	for _, request := range f.requests {
		if strings.HasPrefix(request, r.Method+" ") {
			n++
		}
	}
	if f.fault != nil && f.fault(w, r.Method, n) {
		return
	}
	recorded := httptest.NewRecorder()
	f.serve(recorded, r, string(body))
	if f.lost != nil && f.lost(r.Method, n) {
		dropConnection(w)
		return
	}
	maps.Copy(w.Header(), recorded.Header())
	w.WriteHeader(recorded.Code)
	_, _ = w.Write(recorded.Body.Bytes())
}

func dropConnection(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// answerError answers as S3 does: a code in XML.
func answerError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>said the server</Message></Error>", code)
}

func (f *fakeS3) serve(w http.ResponseWriter, r *http.Request, body string) {
	key := strings.TrimPrefix(r.URL.Path, "/lake/")
	object, found := f.objects[key]
	switch {
	case r.URL.Query().Has("list-type"):
		f.list(w, r)
	case r.Method == http.MethodPut && found:
		answerError(w, http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		f.objects[key] = body
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !found:
		answerError(w, http.StatusNotFound, "NoSuchKey")
	default:
		http.ServeContent(w, r, "", hastyClock{}.Now(), strings.NewReader(object))
	}
}

func (f *fakeS3) list(w http.ResponseWriter, r *http.Request) {
	var keys []string
	for key := range f.objects {
		if strings.HasPrefix(key, r.URL.Query().Get("prefix")) && key > r.URL.Query().Get("start-after") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, "<ListBucketResult>")
	for _, key := range keys {
		_, _ = fmt.Fprintf(w, "<Contents><Key>%s</Key><Size>%d</Size><LastModified>2026-11-29T00:00:00Z</LastModified></Contents>", key, len(f.objects[key]))
	}
	_, _ = io.WriteString(w, "</ListBucketResult>")
}
