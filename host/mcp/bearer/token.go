package bearer

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/skillhost/skill/sdk"
)

// A Token is one that the operator made, without an issuer.
type Token struct {
	Name   string   // the caller is "token:NAME"
	Hash   string   // as NewToken returns it
	Rights []string // as OAuth scopes are
}

// tokenPrefix lets people, and programs that look for leaked secrets, see what
// a token is of.
const tokenPrefix = "skill_"

// A token has 256 random bits: its plain SHA-256 is as good as a slow hash,
// and only what has this form is compared, so nobody can choose a weak one.
var (
	tokenForm = regexp.MustCompile(`^` + tokenPrefix + `[A-Za-z0-9_-]{43}$`)
	tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)
)

// NewToken makes a token and the hash of it that Token holds.
func NewToken() (token, hash string) {
	var raw [32]byte
	rand.Read(raw[:]) // never fails: it ends the process if there is no randomness
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	sum := sha256.Sum256([]byte(token))
	return token, "sha256:" + hex.EncodeToString(sum[:])
}

// Check reports what is wrong with t, if anything.
func (t Token) Check() error {
	_, err := t.parse()
	return err
}

// stored is a Token that was checked.
type stored struct {
	sum      [sha256.Size]byte
	identity Identity
}

func (t Token) parse() (stored, error) {
	s := stored{}
	bad := func(what, hint string) (stored, error) {
		return s, &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("token %q: %s", t.Name, what), Hint: hint}
	}
	if !tokenName.MatchString(t.Name) {
		return bad("bad name", `want up to 64 letters, digits, ".", "_", "@" and "-"`)
	}
	digits, ok := strings.CutPrefix(t.Hash, "sha256:")
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil || len(sum) != len(s.sum) {
		hint := `want "sha256:" and 64 hex digits, as "skill token" prints it`
		if tokenForm.MatchString(t.Hash) {
			hint = "that is the token itself: keep it out of files; " + hint
		}
		return bad("bad hash", hint)
	}
	rights, err := join(t.Rights)
	if err != nil {
		return bad(err.Error(), "")
	}
	copy(s.sum[:], sum)
	s.identity = Identity{Caller: "token:" + t.Name, Rights: rights}
	return s, nil
}

// store checks tokens, none of which may be another's double.
func store(tokens []Token) ([]stored, error) {
	var all []stored
	for _, t := range tokens {
		s, err := t.parse()
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if other.identity.Caller == s.identity.Caller || other.sum == s.sum {
				return nil, invalid(fmt.Sprintf("token %q", t.Name), "its name or hash is there twice", "")
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// find returns whose token has the hash sum. It takes as long whatever it
// finds, and the hash hides how much of a token is right.
func find(tokens []stored, sum [sha256.Size]byte) (id Identity, ok bool) {
	at := -1
	for i := range tokens {
		at = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(tokens[i].sum[:], sum[:]), i, at)
	}
	if at < 0 {
		return Identity{}, false
	}
	return tokens[at].identity, true
}
