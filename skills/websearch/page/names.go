package page

// names are those of elements that matter to a rule. Most tags of a page are of
// others, and are told apart by one look.
type names struct {
	slots [slots]slot
	rest  []slot    // those whose slot is taken
	first [256]bool // letters that names begin with which are known, or whose text is raw
}

type slot struct {
	name   string
	known  bool // to the rule
	traits traits
}

const slots = 128

// hash spreads the names of HTML.
func hash(name []byte) int {
	n := len(name)
	return (n*31 + int(name[0])*7 + int(name[n-1])*13 + int(name[n/2])*3) % slots
}

// newNames makes the table of the names that are known to a rule, and of those
// whose traits are.
func newNames(known ...string) *names {
	t := &names{}
	for _, name := range known {
		t.add(name, true, 0)
	}
	for _, name := range []string{"script", "style", "textarea", "title", "xmp", "iframe", "noembed"} {
		t.add(name, false, raw)
	}
	for _, name := range []string{"br", "img", "meta", "link", "input", "hr", "source", "area", "base", "col", "embed", "track"} {
		t.add(name, false, void)
	}
	for _, name := range []string{"b", "strong", "em", "i", "span", "a", "mark", "u", "code", "font", "sub", "sup", "small", "wbr"} {
		t.add(name, false, inline)
	}
	t.add("wbr", false, void)
	for _, name := range []string{"p", "li", "option", "tr", "td", "th", "dt", "dd"} {
		t.add(name, false, selfEnding)
	}
	return t
}

// add says more of a name.
func (t *names) add(name string, known bool, is traits) {
	at := &t.slots[hash([]byte(name))]
	for i := 0; at.name != "" && at.name != name; i++ {
		if i == len(t.rest) {
			t.rest = append(t.rest, slot{})
		}
		at = &t.rest[i]
	}
	at.name, at.known, at.traits = name, at.known || known, at.traits|is
	if known || is&raw != 0 {
		t.first[name[0]] = true
	}
}

// find returns what is known of a name in lower case, which is not empty.
func (t *names) find(name []byte) (known bool, is traits) {
	at := &t.slots[hash(name)]
	if at.name == string(name) {
		return at.known, at.traits
	}
	if at.name != "" {
		for i := range t.rest {
			if t.rest[i].name == string(name) {
				return t.rest[i].known, t.rest[i].traits
			}
		}
	}
	return false, 0
}

// anyNames knows of names what all rules know.
var anyNames = newNames()
