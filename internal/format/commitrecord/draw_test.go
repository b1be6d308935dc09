package commitrecord_test

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"
)

// drawFields gives each field of a message any value, or leaves it unset.
func drawFields(t *rapid.T, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		m.Clear(f)
		n := rapid.IntRange(0, 3).Draw(t, string(f.Name()))
		switch {
		case n == 0:
		case f.IsList():
			list := m.Mutable(f).List()
			for range n {
				if f.Message() != nil {
					drawFields(t, list.AppendMutable().Message())
					continue
				}
				list.Append(drawScalar(t, f))
			}
		case f.Message() != nil:
			drawFields(t, m.Mutable(f).Message())
		default:
			m.Set(f, drawScalar(t, f))
		}
	}
}

func drawScalar(t *rapid.T, f protoreflect.FieldDescriptor) protoreflect.Value {
	label := string(f.Name())
	switch kind := f.Kind(); kind {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(rapid.Bool().Draw(t, label))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(rapid.Int32().Draw(t, label))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind:
		return protoreflect.ValueOfInt64(rapid.Int64().Draw(t, label))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(rapid.Uint32().Draw(t, label))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(rapid.Uint64().Draw(t, label))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(rapid.String().Draw(t, label))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(rapid.SliceOf(rapid.Byte()).Draw(t, label))
	default:
		panic("the format gained a field of kind " + kind.String())
	}
}
