// Package schema infers the columns of a table from JSON payloads and unions
// them into the schema that the table has.
//
// An Inference gathers what the payloads hold; Union adds to a schema what the
// Inference found and the schema lacks. A union only adds: a landed column keeps
// its id, its name, its type and whether it is required, so two instances that
// evolve one table at once converge when the one that loses reloads and unions
// again. What a column cannot hold is no concern of the union: the decoder puts
// the value into the row's __overflow.
//
// The rules, in short:
//
//   - An object becomes columns; any other payload is read as {"value": payload}.
//   - Integers of 64 bits become long; other numbers become double when a double
//     holds them without loss (see document.Double), else no column. A new
//     column that sees both is double. Text stays string.
//   - Objects become structs and arrays lists, at any depth up to MaxDepth. What
//     holds no value with a type (null, empty containers) makes no column yet.
//   - When the values of a new column disagree, the kind that most of them have
//     wins; at a tie the richer one: object, array, text, number, boolean.
//   - Names match without regard to case. A new column takes the spelling that
//     sorts last, which prefers lower case.
//   - A column is named as its step in a path is written (see AppendStep), so
//     that a dot in a name is never taken for a step.
package schema
