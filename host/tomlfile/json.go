package tomlfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// JSON writes a table that Decode has put into a map as JSON, with its keys
// sorted. Dates, times and numbers without end have no form in JSON.
func JSON(table map[string]any) (json.RawMessage, error) {
	if why := notJSON(table); why != "" {
		return nil, fmt.Errorf("%s has no form in JSON", why)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(table); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// notJSON names what in v JSON cannot say, or is "".
func notJSON(v any) string {
	switch v := v.(type) {
	case time.Time:
		return "a date or time"
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
	case map[string]any:
		for _, e := range v {
			if why := notJSON(e); why != "" {
				return why
			}
		}
	case []map[string]any:
		for _, e := range v {
			if why := notJSON(e); why != "" {
				return why
			}
		}
	case []any:
		for _, e := range v {
			if why := notJSON(e); why != "" {
				return why
			}
		}
	}
	return ""
}
