package bearer

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
)

// wellKnown is where RFC 9728 puts the metadata of a resource, before the
// path of the resource.
const wellKnown = "/.well-known/oauth-protected-resource"

// Metadata serves where clients get their tokens: at the address that a
// challenge names, at the same place beneath "/mcp", and at the well-known path
// alone. Mount it at "/.well-known/oauth-protected-resource" and all beneath.
// Without an issuer there is nothing to be found.
func (d *Door) Metadata() http.Handler {
	own := wellKnown
	if u, err := url.Parse(d.metadata); err == nil && u.Path != "" {
		own = u.Path
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := r.URL.Path
		if d.metadata == "" || p != wellKnown && p != wellKnown+"/mcp" && p != own {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		switch r.Method {
		case http.MethodOptions:
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			h.Set("Access-Control-Allow-Headers", "*")
			h.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
			return
		case http.MethodGet, http.MethodHead:
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		json.NewEncoder(w).Encode(d.published())
	})
}

// resource is the document of RFC 9728.
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported,omitempty"`
	Methods  []string `json:"bearer_methods_supported"`
	Name     string   `json:"resource_name,omitempty"`
}

func (d *Door) published() resource {
	scopes := slices.Clone(d.options.Required)
	if d.options.Offered != nil {
		scopes = append(scopes, d.options.Offered()...)
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	return resource{d.options.Resource, d.options.Issuers, scopes, []string{"header"}, d.options.Name}
}
