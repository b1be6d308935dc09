package blob

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
)

// List implements Store.
func (s *fileStore) List(ctx context.Context, prefix, after string, limit int) ([]Info, error) {
	if err := s.begin(ctx, prefix, checkList(prefix, limit)); err != nil {
		return nil, err
	}
	l := listing{ctx: ctx, fsys: s.root.FS(), prefix: prefix, after: after, limit: limit}
	dir := "."
	if slash := strings.LastIndexByte(prefix, '/'); slash >= 0 {
		dir = prefix[:slash]
	}
	if err := l.walk(dir); err != nil && !errors.Is(err, errPageFull) {
		return nil, fileError("listing objects under "+prefix, err)
	}
	return l.found, nil
}

// errPageFull ends a walk early.
var errPageFull = errors.New("page full")

// listing is one walk in byte order of the keys.
type listing struct {
	ctx    context.Context
	fsys   fs.FS
	prefix string
	after  string
	limit  int
	found  []Info
}

// listed is one name in a folder, as it sorts among the keys: that of a folder
// ends with a slash, because every key below it goes on with one.
type listed struct {
	key   string
	entry fs.DirEntry
}

func (l *listing) walk(dir string) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	children, err := l.children(dir)
	if isAbsent(err) {
		return nil // nothing was put there yet, or it went while we walked
	}
	if err != nil {
		return err
	}
	for _, c := range children {
		if c.entry.IsDir() {
			err = l.walk(strings.TrimSuffix(c.key, "/"))
		} else {
			err = l.add(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// children returns what the page may still need of a folder, in order.
func (l *listing) children(dir string) ([]listed, error) {
	entries, err := fs.ReadDir(l.fsys, dir)
	if err != nil {
		return nil, err
	}
	var children []listed
	for _, entry := range entries {
		key := path.Join(dir, entry.Name())
		isObject := entry.Type().IsRegular()
		if checkKeyPart(entry.Name()) != nil || (!isObject && !entry.IsDir()) {
			continue // hidden, or not ours
		}
		if !isObject {
			key += "/"
		}
		if l.wanted(key) {
			children = append(children, listed{key: key, entry: entry})
		}
	}
	slices.SortFunc(children, func(a, b listed) int { return cmp.Compare(a.key, b.key) })
	return children, nil
}

// wanted reports whether the object key, or a key below the folder key, can have
// the prefix and sort after the start.
func (l *listing) wanted(key string) bool {
	if !strings.HasSuffix(key, "/") {
		return strings.HasPrefix(key, l.prefix) && key > l.after
	}
	onTheWay := strings.HasPrefix(key, l.prefix) || strings.HasPrefix(l.prefix, key)
	return onTheWay && (key > l.after || strings.HasPrefix(l.after, key))
}

func (l *listing) add(c listed) error {
	info, err := c.entry.Info()
	if isAbsent(err) {
		return nil // deleted while we walked
	}
	if err != nil {
		return err
	}
	l.found = append(l.found, Info{Key: c.key, Size: info.Size(), Modified: base.MillisOf(info.ModTime())})
	if len(l.found) == l.limit {
		return errPageFull
	}
	return nil
}
