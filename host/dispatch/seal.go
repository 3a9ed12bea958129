package dispatch

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/skillhost/skill/host/schema"
	"github.com/skillhost/skill/host/store"
	"github.com/skillhost/skill/sdk"
)

// Bounds of a conversation with the user (architecture 8.10).
const (
	maxRounds    = 8
	maxState     = 32 << 10
	maxQuestions = 16
	answerWithin = time.Hour
)

// sealBucket holds the sealing key and the nonces that were used.
const sealBucket = "dispatch.seal"

// A Sealer makes the State of a Result that asks questions unforgeable and
// usable once. The key lives in the store, so that any host of the user can go
// on where another one asked.
type Sealer struct {
	Store store.Store
	Now   func() time.Time // nil means time.Now

	// Process is the session of calls that have none of a transport. What is sealed
	// in it can be opened in that of another host of the user: to a client without
	// a session all hosts are one.
	Process string

	mu   sync.Mutex
	aead cipher.AEAD
}

// sealed is what a State holds. The guest's own state and the answers so far
// are in it, because nothing else of the call is kept while a person thinks.
type sealed struct {
	Scope     sdk.Scope               `json:"scope"`
	Process   bool                    `json:"process,omitempty"` // the session is a host's process, not one of a transport
	Skill     string                  `json:"skill"`             // digest
	Tool      string                  `json:"tool"`
	Args      [32]byte                `json:"args"`
	Round     int                     `json:"round"`
	Expires   time.Time               `json:"expires"`
	Nonce     string                  `json:"nonce"`
	Questions map[string]sdk.Question `json:"questions"`
	Answers   map[string]sdk.Answer   `json:"answers,omitempty"`
	State     string                  `json:"state,omitempty"`
}

// answered is what an opened State and the new answers amount to.
type answered struct {
	round   int
	nonce   string // of the state, spent when the call runs
	expires time.Time
	answers map[string]sdk.Answer
	state   string
}

// sealQuestions turns the guest's state into a sealed one.
func (d *Dispatcher) sealQuestions(r *run, res sdk.Result) (sdk.Result, error) {
	if len(res.Questions) == 0 {
		res.State = ""
		return res, nil
	}
	round := r.plan.answer.round + 1
	switch {
	case round > maxRounds:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool asked for answers more than %d times", maxRounds)}
	case len(res.Questions) > maxQuestions:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool asked more than %d questions at once", maxQuestions)}
	case len(res.State) > maxState:
		return sdk.Result{}, &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("the tool's state is over %d bytes", maxState)}
	}
	for id, q := range res.Questions {
		if err := askable(q); err != nil {
			return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("question %q: %v", id, err)}
		}
		if _, err := schema.Compile(q.Schema); q.Kind == sdk.QuestionForm && err != nil {
			return sdk.Result{}, &sdk.Error{Kind: sdk.Guest, What: fmt.Sprintf("question %q has no valid schema", id), Err: errors.New(err.Error())}
		}
	}
	if err := r.mayAsk(res.Questions); err != nil {
		return sdk.Result{}, err
	}
	nonce := make([]byte, 16)
	rand.Read(nonce)
	p := &r.plan
	state, err := d.Sealer.seal(sealed{
		Scope: p.Call.Scope, Process: d.Sealer.isProcess(p.Call.Scope), Skill: p.Entry.Skill.Home.Digest, Tool: p.asked(), Args: sha256.Sum256(p.Args),
		Round: round, Expires: d.Sealer.now().Add(answerWithin), Nonce: hex.EncodeToString(nonce),
		Questions: res.Questions, Answers: p.answer.answers, State: res.State,
	})
	if err != nil {
		return sdk.Result{}, err
	}
	return sdk.Result{Questions: res.Questions, State: state, Meta: res.Meta}, nil
}

// open checks the State and the answers that a call brings, without spending
// the State.
func (d *Dispatcher) open(p *Plan) error {
	if p.Call.State == "" {
		return nil // nothing was asked yet
	}
	s, err := d.Sealer.open(p.Call.State)
	if err != nil {
		return err
	}
	if !d.Sealer.bound(&s, p.Call.Scope) || s.Skill != p.Entry.Skill.Home.Digest || s.Tool != p.asked() || s.Args != sha256.Sum256(p.Args) || d.Sealer.now().After(s.Expires) {
		return sdk.ErrState
	}
	p.answer = answered{round: s.Round, nonce: s.Nonce, expires: s.Expires, state: s.State, answers: map[string]sdk.Answer{}}
	for id, a := range s.Answers {
		p.answer.answers[id] = a
	}
	for id, a := range p.Call.Answers {
		q, ok := s.Questions[id]
		if !ok { // not asked: it reaches nobody
			continue
		}
		if err := p.mayHear(q); err != nil {
			return err
		}
		if err := checkAnswer(id, q, a); err != nil {
			return err
		}
		p.answer.answers[id] = a
	}
	return nil
}

// isProcess reports whether a call has no session of a transport.
func (s *Sealer) isProcess(scope sdk.Scope) bool {
	return s.Process != "" && scope.Session == s.Process
}

// bound reports whether v was sealed for a scope: for the same, or, where there
// was no session of a transport, for that of another host's process.
func (s *Sealer) bound(v *sealed, scope sdk.Scope) bool {
	of := v.Scope
	if v.Process && s.isProcess(scope) {
		of.Session = scope.Session
	}
	return of == scope
}

// asked names what a state is good for: a tool, or what else it serves.
func (p *Plan) asked() string {
	if p.Call.Kind == sdk.CallTool {
		return p.Entry.Name
	}
	return p.Entry.Name + " " + string(p.Call.Kind) + " " + p.Call.Tool
}

// askable refuses questions that a client must not be handed.
func askable(q sdk.Question) error {
	switch q.Kind {
	case sdk.QuestionForm, sdk.QuestionRoots:
		return nil
	case sdk.QuestionSampling:
		if !isObject(q.Params) {
			return errors.New("sampling without parameters")
		}
		return nil
	case sdk.QuestionURL:
		if u, err := url.Parse(q.URL); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return fmt.Errorf("%.100q is no web address", q.URL)
		}
		return nil
	}
	return fmt.Errorf("unknown kind %.20q", q.Kind)
}

func checkAnswer(id string, q sdk.Question, a sdk.Answer) error {
	switch a.Action {
	case "decline", "cancel":
		return nil
	case "accept":
	default:
		return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("answer to %q: action %q", id, a.Action), Hint: "want accept, decline or cancel"}
	}
	switch q.Kind {
	case sdk.QuestionForm:
	case sdk.QuestionSampling, sdk.QuestionRoots: // accepted whole, as the client gave it
		if !isObject(a.Content) {
			return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("answer to %q: not the result of %s", id, q.Kind)}
		}
		return nil
	default:
		return nil
	}
	if q.Lenient {
		if len(a.Content) > 0 && !isObject(a.Content) {
			return &sdk.Error{Kind: sdk.Invalid, What: fmt.Sprintf("answer to %q: not an object", id)}
		}
		return nil
	}
	s, err := schema.Compile(q.Schema)
	if err != nil {
		return err
	}
	if err := s.Check(a.Content); err != nil {
		return fmt.Errorf("answer to %q: %w", id, err)
	}
	return nil
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{"))
}

func (s *Sealer) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s *Sealer) seal(v sealed) (string, error) {
	aead, err := s.cipher()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if len(plain) > 4*maxState {
		return "", &sdk.Error{Kind: sdk.Limit, What: fmt.Sprintf("questions, answers and state are over %d bytes", 4*maxState)}
	}
	return base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, nil)), nil
}

func (s *Sealer) open(state string) (v sealed, err error) {
	aead, err := s.cipher()
	if err != nil {
		return v, err
	}
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(b) > 8*maxState {
		return v, sdk.ErrState
	}
	plain, err := aead.Open(nil, nil, b, nil)
	if err != nil {
		return v, sdk.ErrState
	}
	return v, json.Unmarshal(plain, &v)
}

// use spends a nonce. The same state brought again is refused. A call without
// a state has none to spend.
func (s *Sealer) use(a answered) error {
	if a.nonce == "" {
		return nil
	}
	ctx := context.Background()
	_, err := s.Store.Put(ctx, sealBucket, usedKey(a.expires)+a.nonce, nil, 0)
	if errors.Is(err, store.ErrConflict) {
		return sdk.ErrState
	}
	if err != nil {
		return s.unavailable(err)
	}
	// Keys sort by expiry: those in front are of states that cannot be opened
	// any more. What is not removed now is the next time.
	old, err := s.Store.List(ctx, sealBucket, usedPrefix, "", 16)
	if err != nil {
		return s.unavailable(err)
	}
	for _, i := range old {
		if i.Key >= usedKey(s.now()) {
			break
		}
		if err := s.Store.Delete(ctx, sealBucket, i.Key, store.Any); err != nil {
			return s.unavailable(err)
		}
	}
	return nil
}

const usedPrefix = "used/"

func usedKey(expires time.Time) string { return fmt.Sprintf("%s%016x-", usedPrefix, expires.Unix()) }

func (s *Sealer) unavailable(err error) error {
	return &sdk.Error{Kind: sdk.Unavailable, Op: "dispatch", What: "the state of questions", Err: err}
}

// cipher returns the AEAD under the user's key, which the first host makes.
func (s *Sealer) cipher() (cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.aead != nil {
		return s.aead, nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	_, err := s.Store.Put(context.Background(), sealBucket, "key", key, 0)
	if errors.Is(err, store.ErrConflict) {
		key, _, err = s.Store.Get(context.Background(), sealBucket, "key")
	}
	if err != nil {
		return nil, &sdk.Error{Kind: sdk.Unavailable, Op: "dispatch", What: "the key that protects questions", Err: err}
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	s.aead, err = cipher.NewGCMWithRandomNonce(block)
	return s.aead, err
}
