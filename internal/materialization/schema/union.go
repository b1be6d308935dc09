package schema

import (
	"cmp"
	"maps"
	"slices"

	"github.com/apache/iceberg-go"
)

// New returns the schema of a new table: the system columns, then a column for
// each thing that the inference found.
func New(system SystemColumns, in *Inference) *iceberg.Schema {
	u := union{limits: in.limits, left: in.limits.MaxColumns}
	fields := u.ids.assign(system.fields())
	u.left -= leaves(fields)
	fields = append(fields, u.added(in.root.fields, nil, 1)...)
	return iceberg.NewSchema(0, fields...)
}

// Union returns the landed schema with what it lacks of the system columns and
// of what the inference found, and whether that is anything. New columns are
// optional and take ids above lastID, the highest that the table ever assigned.
// It errors with base.ErrInvalid when a landed column has the name of a wanted
// system column and another type.
func Union(landed *iceberg.Schema, lastID int, system SystemColumns, in *Inference) (*iceberg.Schema, bool, error) {
	u := union{limits: in.limits, ids: idSource{last: max(lastID, landed.HighestFieldID())}}
	fields := landed.Fields()
	u.left = in.limits.MaxColumns - leaves(fields)
	for _, column := range system.fields() {
		found, err := checkSystem(fields, column)
		if err != nil {
			return nil, false, err
		}
		if !found {
			column.Required = false
			fields = append(fields, u.ids.assign([]iceberg.NestedField{column})...)
			u.left -= leaves(fields[len(fields)-1:])
			u.changed = true
		}
	}
	fields = u.fields(fields, in.root.fields, 1)
	if !u.changed {
		return landed, false, nil
	}
	return iceberg.NewSchemaWithIdentifiers(landed.ID, landed.IdentifierFieldIDs, fields...), true, nil
}

// idSource gives out field ids.
type idSource struct{ last int }

func (s *idSource) next() int {
	s.last++
	return s.last
}

// assign gives ids to fields and all inside them.
func (s *idSource) assign(fields []iceberg.NestedField) []iceberg.NestedField {
	for i := range fields {
		fields[i].ID = s.next()
		s.assignType(fields[i].Type)
	}
	return fields
}

func (s *idSource) assignType(t iceberg.Type) {
	switch t := t.(type) {
	case *iceberg.StructType:
		s.assign(t.FieldList)
	case *iceberg.ListType:
		t.ElementID = s.next()
		s.assignType(t.Element)
	}
}

// leaves counts the leaf columns of fields.
func leaves(fields []iceberg.NestedField) int {
	count := 0
	for _, field := range fields {
		count += leavesOf(field.Type)
	}
	return count
}

func leavesOf(t iceberg.Type) int {
	switch t := t.(type) {
	case *iceberg.StructType:
		return leaves(t.FieldList)
	case *iceberg.ListType:
		return leavesOf(t.Element)
	case *iceberg.MapType:
		return leavesOf(t.KeyType) + leavesOf(t.ValueType)
	default:
		return 1
	}
}

// Leaves counts the leaf columns of a schema: what MaxColumns limits.
func Leaves(s *iceberg.Schema) int { return leaves(s.Fields()) }

// union is one union under way. left is how many more leaf columns may come.
type union struct {
	limits  Limits
	ids     idSource
	left    int
	changed bool
}

// fields returns the landed fields of one struct, their types unioned with what
// was seen, and the new fields after them.
func (u *union) fields(landed []iceberg.NestedField, seen map[string]*seenNode, depth int) []iceberg.NestedField {
	taken := make(map[string]bool, len(landed))
	for i := range landed {
		folded := Fold(string(AppendStep(nil, []byte(NameOf(landed[i].Name)))))
		taken[folded] = true
		if node := seen[folded]; node != nil {
			u.into(landed[i].Type, node, depth)
		}
	}
	added := u.added(seen, taken, depth)
	u.changed = u.changed || len(added) > 0
	return append(landed, added...)
}

// into adds to a landed type, a copy that may be changed, what a node saw inside.
func (u *union) into(landed iceberg.Type, node *seenNode, depth int) {
	switch t := landed.(type) {
	case *iceberg.StructType:
		t.FieldList = u.fields(t.FieldList, node.fields, depth+1)
	case *iceberg.ListType:
		if node.elem != nil {
			u.into(t.Element, node.elem, depth+1)
		}
	}
}

// added returns new fields for the nodes whose names are not taken.
func (u *union) added(seen map[string]*seenNode, taken map[string]bool, depth int) []iceberg.NestedField {
	if depth > u.limits.MaxDepth {
		return nil
	}
	var fields []iceberg.NestedField
	for _, folded := range inOrder(seen) {
		if taken[folded] {
			continue
		}
		node := seen[folded]
		if t := u.typeOf(node, depth); t != nil {
			fields = append(fields, u.ids.assign([]iceberg.NestedField{{Name: node.step, Type: t}})...)
		}
	}
	return fields
}

// typeOf returns the type of a new column at depth, without ids: of the kind
// that most values have among those that yield a type. It is nil when none
// does or no more columns may come; then it used up none.
func (u *union) typeOf(node *seenNode, depth int) iceberg.Type {
	if depth > u.limits.MaxDepth {
		return nil
	}
	counts := node.counts
	if counts[double] > 0 {
		counts[double] += counts[long]
		counts[long] = 0
	}
	order := []kind{object, list, text, double, long, boolean}
	slices.SortStableFunc(order, func(a, b kind) int { return cmp.Compare(counts[b], counts[a]) })
	for _, k := range order {
		if counts[k] == 0 {
			return nil
		}
		if t := u.build(k, node, depth); t != nil {
			return t
		}
	}
	return nil
}

func (u *union) build(k kind, node *seenNode, depth int) iceberg.Type {
	switch k {
	case object:
		return u.buildStruct(node, depth)
	case list:
		if node.elem == nil {
			return nil
		}
		element := u.typeOf(node.elem, depth+1)
		if element == nil {
			return nil
		}
		return &iceberg.ListType{Element: element}
	case boolean, long, double, text, kinds:
	}
	if u.left <= 0 {
		return nil
	}
	u.left--
	return scalars[k]
}

var scalars = [kinds]iceberg.Type{
	boolean: iceberg.PrimitiveTypes.Bool,
	long:    iceberg.PrimitiveTypes.Int64,
	double:  iceberg.PrimitiveTypes.Float64,
	text:    iceberg.PrimitiveTypes.String,
}

func (u *union) buildStruct(node *seenNode, depth int) iceberg.Type {
	var fields []iceberg.NestedField
	for _, folded := range inOrder(node.fields) {
		child := node.fields[folded]
		if t := u.typeOf(child, depth+1); t != nil {
			fields = append(fields, iceberg.NestedField{Name: child.step, Type: t})
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return &iceberg.StructType{FieldList: fields}
}

// inOrder returns the keys in the order in which new columns stand.
func inOrder(seen map[string]*seenNode) []string {
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(seen[a].position, seen[b].position), cmp.Compare(a, b))
	})
}
