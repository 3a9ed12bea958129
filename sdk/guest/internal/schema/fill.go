package schema

import (
	"encoding/json"
	"reflect"
)

// Default sets the fields of v, a struct that can be set, whose tags have a
// default, those of inner structs too. Decoding into v afterwards overwrites
// what the document names. Structs behind pointers and in lists are left
// alone: they do not exist before they are decoded.
func Default(v reflect.Value) {
	if v.Kind() != reflect.Struct || v.Type() == timeType {
		return
	}
	for _, f := range fieldsOf(v.Type()) {
		at, err := v.FieldByIndexErr(f.Index)
		if err != nil {
			continue // promoted through a nil pointer
		}
		if s, ok := f.Tag.Lookup("default"); ok {
			if raw, err := f.defaultJSON(s); err == nil { // Of has refused the rest
				json.Unmarshal(raw, at.Addr().Interface())
			}
			continue
		}
		Default(at)
	}
}

// Listed replaces the nil lists and maps in v that would be encoded as null by
// empty ones, since their schema says array or object. v must be a pointer, or
// else only what it points to is reached.
func Listed(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			Listed(v.Elem())
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			Listed(v.Index(i))
		}
	case reflect.Map:
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				Listed(f)
			}
		}
	}
}
