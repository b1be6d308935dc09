package blob

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob/s3blob"

	"github.com/lakestream-go/lakestream/internal/base"
)

// defaultRegion signs requests to services of other vendors, which mostly do not
// care.
const defaultRegion = "us-east-1"

// openS3 opens a bucket of S3 or of a service that speaks its protocol. The service
// must support conditional writes (If-None-Match).
func openS3(ctx context.Context, bucket string, c Cloud) (provider, error) {
	cfg, transport, err := loadS3(ctx, c)
	if err != nil {
		return provider{}, err
	}
	calls := s3.NewFromConfig(cfg, s3Options(c), func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
	streams := s3.NewFromConfig(cfg, s3Options(c), func(o *s3.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) { r.MaxAttempts = maxAttempts })
	})
	options := &s3blob.Options{RequestChecksumCalculation: calls.Options().RequestChecksumCalculation}
	p := provider{put: putS3(calls, bucket), remove: removeS3(calls, bucket), startAfter: startAfterS3, close: closeIdle(transport)}
	if p.calls, err = s3blob.OpenBucket(ctx, calls, bucket, options); err != nil {
		return provider{}, fmt.Errorf("opening bucket %s: %w", bucket, base.WithClass(base.ErrInvalid, err))
	}
	if p.streams, err = s3blob.OpenBucket(ctx, streams, bucket, options); err != nil {
		return provider{}, fmt.Errorf("opening bucket %s: %w", bucket, base.WithClass(base.ErrInvalid, err))
	}
	return p, nil
}

// loadS3 reads the configuration of the surroundings and lays ours over it.
func loadS3(ctx context.Context, c Cloud) (aws.Config, *http.Transport, error) {
	k := c.Credentials
	options := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(tuneTransport)),
	}
	if c.Region != "" {
		options = append(options, config.WithRegion(c.Region))
	}
	if k.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(k.Profile))
	}
	if k.ID != "" {
		static := credentials.NewStaticCredentialsProvider(k.ID, string(k.Secret), string(k.Token))
		options = append(options, config.WithCredentialsProvider(static))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return aws.Config{}, nil, base.WithClass(base.ErrInvalid, fmt.Errorf("storage.credentials: reading the configuration of the surroundings: %w", err))
	}
	if cfg.Region == "" && c.Endpoint != "" {
		cfg.Region = defaultRegion
	}
	if cfg.Region == "" {
		return aws.Config{}, nil, refused("region", "set the region of the bucket, here or as AWS_REGION")
	}
	transport := ownTransport(&cfg)
	if k.Role != "" {
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), k.Role, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = "lakestream"
			if k.RoleExternalID != "" {
				o.ExternalID = aws.String(k.RoleExternalID)
			}
		})
		cfg.Credentials = aws.NewCredentialsCache(role)
	}
	return cfg, transport, nil
}

// ownTransport takes the connections out of the client that the configuration
// made, with the surroundings' certificates, so that they can be closed.
func ownTransport(cfg *aws.Config) *http.Transport {
	transport := newTransport()
	if made, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = made.GetTransport()
	}
	cfg.HTTPClient = &http.Client{Transport: transport, CheckRedirect: sameMethod}
	return transport
}

func s3Options(c Cloud) func(*s3.Options) {
	return func(o *s3.Options) {
		o.UsePathStyle = c.ForcePathStyleURLs
		if c.Endpoint == "" {
			return
		}
		o.BaseEndpoint = aws.String(c.Endpoint)
		// Services of other vendors may not know the checksums that the client
		// adds by itself. Every object has its own.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
}

// putS3 sends an object as one request, from the caller's memory: the library would
// copy it through a pipe first, and cut it in parts that cost a request each.
func putS3(client *s3.Client, bucket string) func(context.Context, string, []byte) error {
	return func(ctx context.Context, name string, data []byte) error {
		_, err := client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: aws.String(bucket), Key: aws.String(name), Body: bytes.NewReader(data),
			ContentType: aws.String(contentType), IfNoneMatch: aws.String("*"),
		})
		return err
	}
}

// removeS3 deletes an object by one request: the library would look first whether
// it is there.
func removeS3(client *s3.Client, bucket string) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(name)})
		return err
	}
}

func startAfterS3(as func(any) bool, name string) {
	var input *s3.ListObjectsV2Input
	if as(&input) && input.ContinuationToken == nil {
		input.StartAfter = aws.String(name)
	}
}

func closeIdle(transport *http.Transport) func() error {
	return func() error {
		transport.CloseIdleConnections()
		return nil
	}
}
