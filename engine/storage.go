package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/lakestream-go/lakestream/internal/base"
	"github.com/lakestream-go/lakestream/internal/blob"
	"github.com/lakestream-go/lakestream/internal/materialization/icebergtables"
)

// StorageCredentials say who we are to a provider of buckets. The zero value takes
// what the surroundings say: environment variables, files in the home directory,
// the machine's identity. Secrets show as stars wherever they are printed.
type StorageCredentials = blob.Credentials

// StorageOptions say where objects are kept.
type StorageOptions struct {
	// URL of the store: file://, mem://, s3://bucket/prefix, gs://bucket/prefix or
	// azblob://container/prefix. Empty means the data directory. With mem://
	// everything else is temporary too, unless it has a place of its own.
	URL string
	// Region of an S3 bucket; by default the surroundings'.
	Region string
	// Endpoint is the address of a service that is not the provider's public
	// one. Without TLS only this machine is taken.
	Endpoint string
	// ForcePathStyleURLs puts the bucket of S3 into the path of a request
	// instead of the host name, as most services other than AWS need.
	ForcePathStyleURLs bool
	// Credentials are who we are to the provider.
	Credentials StorageCredentials
}

func (s *StorageOptions) cloud() blob.Cloud {
	return blob.Cloud{
		Region: s.Region, Endpoint: s.Endpoint, ForcePathStyleURLs: s.ForcePathStyleURLs, Credentials: s.Credentials,
	}
}

// location returns where the store's root is as readers of tables spell it, for
// buckets.
func (s *StorageOptions) location() string { return blob.TableLocation(s.URL, s.cloud()) }

// checkStorage validates where objects and tables are kept.
func (o *Options) checkStorage() error {
	if err := o.Storage.cloud().Validate(o.storageURL()); err != nil {
		return err
	}
	warehouse := o.Catalog.Warehouse
	if err := schemeOf("catalog.warehouse", warehouse, "file", "mem", "s3", "gs", "abfss"); err != nil {
		return err
	}
	if blob.IsCloud(o.Storage.URL) && o.Storage.location() == "" {
		return fmt.Errorf("storage.credentials.id: name the storage account, here or as AZURE_STORAGE_ACCOUNT: %w", base.ErrInvalid)
	}
	if strings.HasPrefix(warehouse, "abfss:") && !isBelow(warehouse, o.Storage.location()) {
		return fmt.Errorf("catalog.warehouse: an abfss:// location must lie in storage.url: %w", base.ErrInvalid)
	}
	return nil
}

// storageURL returns where objects are.
func (o *Options) storageURL() string {
	if o.Storage.URL != "" {
		return o.Storage.URL
	}
	return fileURL(filepath.Join(o.DataDir, "objects"))
}

// warehouse returns where tables are: beside the objects when those have a place
// of their own, as every instance reaches it.
func (o *Options) warehouse() string {
	switch {
	case o.Catalog.Warehouse != "":
		return o.Catalog.Warehouse
	case blob.IsCloud(o.Storage.URL):
		return o.Storage.location() + "/warehouse"
	case o.Storage.URL != "" && !strings.HasPrefix(o.Storage.URL, "mem:"):
		return strings.TrimSuffix(o.Storage.URL, "/") + "/warehouse"
	default:
		return fileURL(filepath.Join(o.DataDir, "warehouse"))
	}
}

// isBelow reports whether a location lies in a store.
func isBelow(location, root string) bool {
	return root != "" && strings.HasPrefix(location+"/", strings.TrimRight(root, "/")+"/")
}

func (e *Engine) openObjects(ctx context.Context) error {
	objects, err := blob.Open(ctx, e.opts.storageURL(), blob.Options{
		MustExist: e.opts.Observe, Cloud: e.opts.Storage.cloud(), Clock: e.clock,
	})
	if e.opts.Observe && e.opts.Storage.URL == "" && errors.Is(err, base.ErrNotFound) {
		return fmt.Errorf("%w: where objects are elsewhere, name the pipeline's file with -c", err)
	}
	if err != nil {
		return err
	}
	e.objects = blob.NewCounted(e.opts.hooks.wrapObjects(objects))
	return nil
}

func (e *Engine) openTables(ctx context.Context) error {
	config := icebergtables.Config{
		Type: e.opts.Catalog.Type, URI: e.opts.catalogURI(), Warehouse: e.opts.warehouse(), Properties: e.opts.Catalog.Properties,
	}
	if err := e.openWarehouse(ctx, &config); err != nil {
		return fmt.Errorf("opening warehouse: %w", err)
	}
	tables, err := icebergtables.Open(ctx, config)
	if err != nil {
		return fmt.Errorf("opening table catalog: %w", err)
	}
	e.tables = tables
	return nil
}

// openWarehouse finds the store of tables that are in a bucket: that of the objects
// where they lie in it, else one of their own with the same credentials.
func (e *Engine) openWarehouse(ctx context.Context, config *icebergtables.Config) error {
	root := e.opts.Storage.location()
	switch {
	case isBelow(config.Warehouse, root):
		config.Store, config.StoreLocation = e.objects, root
	case blob.IsCloud(config.Warehouse):
		store, err := blob.Open(ctx, config.Warehouse, blob.Options{Cloud: e.opts.Storage.cloud(), Clock: e.clock})
		if err != nil {
			return err
		}
		e.warehouse = store
		config.Store, config.StoreLocation = store, config.Warehouse
	}
	return nil
}
