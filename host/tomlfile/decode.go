package tomlfile

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/skillhost/skill/host/nearest"
)

// A decoder moves a TOML tree into Go values, with the scanner's tree beside
// it for the lines.
type decoder struct{ doc *Doc }

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
)

func (d *decoder) decode(path []string, data any, n *node, rv reflect.Value) error {
	if done, err := d.custom(path, data, n, rv); done {
		return err
	}
	switch rv.Kind() {
	case reflect.Pointer:
		p := reflect.New(rv.Type().Elem())
		if err := d.decode(path, data, n, p.Elem()); err != nil {
			return err
		}
		rv.Set(p)
		return nil
	case reflect.Interface:
		if rv.NumMethod() > 0 {
			return d.unsupported(path, n, rv)
		}
		rv.Set(reflect.ValueOf(data))
		return nil
	case reflect.Struct:
		if rv.Type() == timeType {
			break
		}
		t, ok := data.(map[string]any)
		if !ok {
			return d.mismatch(path, "a table", data, n)
		}
		return d.structure(path, t, n, rv)
	case reflect.Map:
		t, ok := data.(map[string]any)
		if !ok {
			return d.mismatch(path, "a table", data, n)
		}
		return d.mapping(path, t, n, rv)
	case reflect.Slice:
		return d.slice(path, data, n, rv)
	}
	return d.scalar(path, data, n, rv)
}

// custom lets a type decode itself.
func (d *decoder) custom(path []string, data any, n *node, rv reflect.Value) (done bool, err error) {
	if !rv.CanAddr() || rv.Type() == timeType {
		return false, nil
	}
	switch u := rv.Addr().Interface().(type) {
	case interface{ UnmarshalTOML(any) error }:
		err = u.UnmarshalTOML(data)
	case encoding.TextUnmarshaler:
		s, ok := data.(string)
		if !ok {
			return true, d.mismatch(path, "a string", data, n)
		}
		err = u.UnmarshalText([]byte(s))
	default:
		return false, nil
	}
	if err != nil {
		err = d.doc.invalid(n.line, fmt.Sprintf("%s: %v", strings.Join(path, "."), err), "")
	}
	return true, err
}

func (d *decoder) structure(path []string, t map[string]any, n *node, rv reflect.Value) error {
	fields := map[string][]int{}
	fieldsOf(rv.Type(), nil, fields)
	for _, k := range n.order { // in the order of the file: the first error is the one reported
		index, ok := fields[k]
		if !ok {
			return d.unknown(path, k, n, fields)
		}
		if err := d.decode(append(path[:len(path):len(path)], k), t[k], n.keys[k], rv.FieldByIndex(index)); err != nil {
			return err
		}
	}
	return nil
}

// fieldsOf fills fields with the key and the index of every field of t.
func fieldsOf(t reflect.Type, at []int, fields map[string][]int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(at[:len(at):len(at)], i)
		name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			fieldsOf(f.Type, index, fields)
		case !f.IsExported():
		case name == "":
			fields[strings.ToLower(f.Name)] = index
		default:
			fields[name] = index
		}
	}
}

func (d *decoder) unknown(path []string, key string, n *node, fields map[string][]int) error {
	var known []string
	for k := range fields {
		known = append(known, k)
	}
	slices.Sort(known)
	hint := "known here: " + strings.Join(known, ", ")
	if len(known) == 0 {
		hint = "no keys are known here"
	}
	if near := nearest.Names(key, known, 1); near != nil {
		hint = fmt.Sprintf("did you mean %q? %s", near[0], hint)
	}
	return d.doc.invalid(n.keys[key].line, fmt.Sprintf("unknown key %q %s", key, where(path)), hint)
}

// where names the table at path, for messages.
func where(path []string) string {
	if len(path) == 0 {
		return "at the top level"
	}
	if _, err := strconv.Atoi(path[len(path)-1]); err == nil {
		return "in [[" + strings.Join(path[:len(path)-1], ".") + "]]"
	}
	return "in [" + strings.Join(path, ".") + "]"
}

func (d *decoder) mapping(path []string, t map[string]any, n *node, rv reflect.Value) error {
	if rv.Type().Key().Kind() != reflect.String {
		return d.unsupported(path, n, rv)
	}
	if rv.IsNil() {
		rv.Set(reflect.MakeMapWithSize(rv.Type(), len(t)))
	}
	for _, k := range n.order {
		elem := reflect.New(rv.Type().Elem()).Elem()
		if err := d.decode(append(path[:len(path):len(path)], k), t[k], n.keys[k], elem); err != nil {
			return err
		}
		rv.SetMapIndex(reflect.ValueOf(k).Convert(rv.Type().Key()), elem)
	}
	return nil
}

func (d *decoder) slice(path []string, data any, n *node, rv reflect.Value) error {
	src := reflect.ValueOf(data)
	if src.Kind() != reflect.Slice {
		return d.mismatch(path, "an array", data, n)
	}
	out := reflect.MakeSlice(rv.Type(), src.Len(), src.Len())
	for i := range src.Len() {
		at := append(path[:len(path):len(path)], fmt.Sprint(i))
		if err := d.decode(at, src.Index(i).Interface(), n.elems[i], out.Index(i)); err != nil {
			return err
		}
	}
	rv.Set(out)
	return nil
}

func (d *decoder) scalar(path []string, data any, n *node, rv reflect.Value) error {
	switch {
	case rv.Type() == durationType:
		s, ok := data.(string)
		if !ok {
			return d.mismatch(path, `a duration such as "30s"`, data, n)
		}
		v, err := time.ParseDuration(s)
		if err != nil {
			return d.doc.invalid(n.line, fmt.Sprintf("%s: bad duration %q", strings.Join(path, "."), s), `write for example "30s", "500ms" or "10m"`)
		}
		rv.SetInt(int64(v))
	case rv.Type() == timeType:
		v, ok := data.(time.Time)
		if !ok {
			return d.mismatch(path, "a date and time", data, n)
		}
		rv.Set(reflect.ValueOf(v))
	case rv.Kind() == reflect.String:
		v, ok := data.(string)
		if !ok {
			return d.mismatch(path, "a string", data, n)
		}
		rv.SetString(v)
	case rv.Kind() == reflect.Bool:
		v, ok := data.(bool)
		if !ok {
			return d.mismatch(path, "true or false", data, n)
		}
		rv.SetBool(v)
	case rv.CanInt() || rv.CanUint() || rv.CanFloat():
		return d.number(path, data, n, rv)
	default:
		return d.unsupported(path, n, rv)
	}
	return nil
}

func (d *decoder) number(path []string, data any, n *node, rv reflect.Value) error {
	v, whole := data.(int64)
	switch f, float := data.(float64); {
	case rv.CanFloat() && float:
		rv.SetFloat(f)
	case rv.CanFloat() && whole:
		rv.SetFloat(float64(v))
	case rv.CanFloat():
		return d.mismatch(path, "a number", data, n)
	case !whole:
		return d.mismatch(path, "an integer", data, n)
	case rv.CanInt() && !rv.OverflowInt(v):
		rv.SetInt(v)
	case rv.CanUint() && v >= 0 && !rv.OverflowUint(uint64(v)):
		rv.SetUint(uint64(v))
	default:
		return d.doc.invalid(n.line, fmt.Sprintf("%s: %d is out of range", strings.Join(path, "."), v), "")
	}
	return nil
}

func (d *decoder) mismatch(path []string, want string, data any, n *node) error {
	return d.doc.invalid(n.line, fmt.Sprintf("%s: want %s, found %s", strings.Join(path, "."), want, typeName(data)), "")
}

func (d *decoder) unsupported(path []string, n *node, rv reflect.Value) error {
	return d.doc.invalid(n.line, fmt.Sprintf("%s: the host cannot read a %s", strings.Join(path, "."), rv.Type()), "this is a bug in the host")
}

// typeName says what data is in the words of TOML.
func typeName(data any) string {
	switch data.(type) {
	case string:
		return "a string"
	case int64:
		return "an integer"
	case float64:
		return "a float"
	case bool:
		return "a boolean"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	}
	return "an array"
}
