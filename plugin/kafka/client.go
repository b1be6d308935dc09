package kafka

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redpanda-data/benthos/v4/public/service"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/lakestream-go/lakestream/config"
)

// minMetadataAge is the least time between questions for metadata that trouble asks
// for.
const minMetadataAge = time.Second

// clientOptions returns what the configuration says, in the client's terms.
func clientOptions(conf *config.KafkaInput, logger *service.Logger) []kgo.Opt {
	start, isolation := kgo.NewOffset().AtStart(), kgo.ReadCommitted()
	if conf.FromEnd {
		start = kgo.NewOffset().AtEnd()
	}
	if conf.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(conf.SeedBrokers...),
		kgo.ClientID(conf.ClientID),
		kgo.Rack(conf.RackID),
		kgo.ConsumeTopics(conf.Topics...),
		kgo.ConsumeStartOffset(start),
		// What a broker lost is read again from the start, rather than left out.
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxBytes(conf.FetchMaxBytes),
		kgo.FetchMaxPartitionBytes(conf.FetchMaxPartitionBytes),
		kgo.BrokerMaxReadBytes(max(conf.FetchMaxBytes, conf.FetchMaxPartitionBytes) * 2),
		kgo.MetadataMaxAge(conf.MetadataMaxAge),
		kgo.MetadataMinAge(min(conf.MetadataMaxAge, minMetadataAge)),
		kgo.WithLogger(clientLogger{logger}),
	}
	if conf.Regexp {
		opts = append(opts, kgo.ConsumeRegex())
	}
	if conf.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(conf.TLS))
	}
	if len(conf.SASL) > 0 {
		opts = append(opts, kgo.SASL(mechanisms(conf.SASL)...))
	}
	return opts
}

// groupOptions makes the client a member of a group that commits what was marked.
func groupOptions(conf *config.KafkaInput, c *consumer) []kgo.Opt {
	opts := []kgo.Opt{
		kgo.ConsumerGroup(conf.ConsumerGroup),
		kgo.SessionTimeout(conf.SessionTimeout),
		kgo.RebalanceTimeout(conf.RebalanceTimeout),
		kgo.HeartbeatInterval(conf.HeartbeatInterval),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(conf.CommitPeriod),
		kgo.AutoCommitCallback(c.committed),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsRevoked(c.revoked),
		kgo.OnPartitionsLost(c.lost),
	}
	if conf.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(conf.InstanceID))
	}
	return opts
}

func mechanisms(credentials []config.KafkaSASL) []sasl.Mechanism {
	all := make([]sasl.Mechanism, 0, len(credentials))
	for _, c := range credentials {
		password := string(c.Password)
		switch c.Mechanism {
		case config.KafkaPlain:
			all = append(all, plain.Auth{User: c.Username, Pass: password}.AsMechanism())
		case config.KafkaScramSHA256:
			all = append(all, scram.Auth{User: c.Username, Pass: password}.AsSha256Mechanism())
		case config.KafkaScramSHA512:
			all = append(all, scram.Auth{User: c.Username, Pass: password}.AsSha512Mechanism())
		}
	}
	return all
}

// missingTopics returns which of the topics the brokers do not know.
func missingTopics(ctx context.Context, client *kgo.Client, topics []string) ([]string, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = new(topic)
		request.Topics = append(request.Topics, one)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("looking topics up: %w", err)
	}
	var missing []string
	for _, topic := range response.Topics {
		if topic.ErrorCode == kerr.UnknownTopicOrPartition.Code && topic.Topic != nil {
			missing = append(missing, *topic.Topic)
		}
	}
	return missing, nil
}

// clientLogger passes the client's log to that of Benthos. What the client tells as
// information is of use to those who look for a defect only.
type clientLogger struct{ logger *service.Logger }

// Level implements kgo.Logger.
func (clientLogger) Level() kgo.LogLevel { return kgo.LogLevelInfo }

// Log implements kgo.Logger.
func (l clientLogger) Log(level kgo.LogLevel, message string, keyvals ...any) {
	if l.logger == nil {
		return
	}
	fields := make([]any, len(keyvals))
	for i, v := range keyvals {
		fields[i] = strings.TrimSpace(fmt.Sprint(v))
	}
	logger := l.logger.With(fields...)
	switch level {
	case kgo.LogLevelError, kgo.LogLevelWarn:
		logger.Warn("kafka client: " + message)
	default:
		logger.Debug("kafka client: " + message)
	}
}
