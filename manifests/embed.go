// Package manifests holds the manifests of the built-in skills that have no
// module of their own, what built-ins are held to as shipped, and the JSON
// Schema of skill.toml for editors. It does not check anything: host/manifest
// is stricter than a schema can be.
package manifests

import "embed"

// FS has a folder for each of the skills: those without a module, and those
// that are plugins inside of the binary.
//
//go:embed invoke-skill shell web
var FS embed.FS

// Shipped is the policy that holds built-ins until the operator says
// something else about them.
//
//go:embed shipped.toml
var Shipped []byte

// SkillSchema is the JSON Schema of skill.toml.
//
//go:embed skill.schema.json
var SkillSchema string
