package commit

import (
	"context"
	"errors"
	"time"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/materialization"
)

// missingFiles returns the files of a group that are gone, of those that are
// worth a look: old ones, or all after a commit found one missing.
func (c *Committer) missingFiles(ctx context.Context, g group, now time.Time) ([]MissingFile, error) {
	var missing []MissingFile
	for _, r := range g.ranges {
		if !c.checkFiles && now.Sub(r.Accepted.Time()) < checkFilesAfter {
			continue
		}
		for _, files := range [][]materialization.DataFile{r.Main, r.DeadLetter} {
			for _, file := range files {
				gone, err := c.isMissing(ctx, file.Path)
				if err != nil {
					return nil, err
				}
				if gone {
					missing = append(missing, MissingFile{Log: r.Log, Range: r.Range, Path: file.Path})
				}
			}
		}
	}
	c.checkFiles = len(missing) > 0
	return missing, nil
}

func (c *Committer) isMissing(ctx context.Context, path string) (bool, error) {
	file, err := c.options.Tables.OpenFile(ctx, path)
	if errors.Is(err, base.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, file.Close()
}
