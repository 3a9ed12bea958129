package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skillhost/skill/host/sandbox"
	"github.com/skillhost/skill/sdk"
)

// repository makes one in the workspace of w: two commits, and a change.
func repository(t *testing.T, w *world) {
	t.Helper()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", w.work, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) { put(t, filepath.Join(w.work, name), text, 0o644) }
	git("init", "--quiet")
	write("a.txt", "one\n")
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	write("a.txt", "one\ntwo\n")
	write("-x", "odd\n")
	git("add", "-A")
	git("commit", "--quiet", "-m", "second")
	write("a.txt", "one\ntwo\nthree\n")
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestGitReadonly(t *testing.T) { atLevels(t, testGitReadonly) }

func testGitReadonly(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	w := example(t, "git-readonly", l, report)
	repository(t, w)
	for _, tt := range []struct{ name, tool, args, want string }{
		{"status", "status", `{}`, " M a.txt"},
		{"log", "log", `{"format":"--oneline"}`, "second\n"},
		{"log_one", "log", `{"count":1,"format":"--oneline","revision":"HEAD~1"}`, "first\n"},
		{"log_path", "log", `{"paths":["-x"],"format":"--name-status"}`, "A\t-x"},
		{"log_author", "log", `{"author":"Ann"}`, "ann@example.com"},
		{"diff", "diff", `{}`, "+three"},
		{"diff_staged", "diff", `{"staged":"--cached"}`, ""},
		{"diff_range", "diff", `{"revision":"HEAD~1..HEAD","format":"--stat"}`, "a.txt | 1 +"},
		{"show", "show", `{}`, "+two"},
		{"show_file", "show", `{"revision":"HEAD~1:a.txt"}`, "one\n"},
		{"blame", "blame", `{"path":"a.txt","lines":"2,+1"}`, "two"},
		{"blame_odd_name", "blame", `{"path":"-x"}`, "odd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			r, err := w.run(within(t, time.Minute), tt.tool, tt.args)
			if err != nil || r.Failed || !strings.Contains(r.Content[0].Text, tt.want) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// What a caller says never becomes an option of git, and no path leads out of
// the workspace.
func TestGitHostileArguments(t *testing.T) { atLevels(t, testGitHostileArguments) }

func testGitHostileArguments(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	w := example(t, "git-readonly", l, report)
	repository(t, w)
	outside := place(t)
	secret := filepath.Join(outside, "secret")
	put(t, secret, "TOPSECRET\n", 0o644)
	target := filepath.Join(outside, "written")
	for _, tt := range []struct{ name, tool, args string }{
		{"option_output", "log", `{"revision":"--output=` + target + `"}`},
		{"option_output_in_workspace", "diff", `{"revision":"--output=` + filepath.Join(w.work, "written") + `"}`},
		{"option_config", "log", `{"revision":"-calias.log=!touch ` + target + `"}`},
		{"option_upload_pack", "show", `{"revision":"--upload-pack=touch ` + target + `"}`},
		{"option_exec_path", "show", `{"revision":"--exec-path=/tmp"}`},
		{"option_no_index", "diff", `{"revision":"--no-index","paths":["` + secret + `","/dev/null"]}`},
		{"option_textconv", "show", `{"revision":"--textconv"}`},
		{"option_ext_diff", "diff", `{"revision":"--ext-diff"}`},
		{"option_contents", "blame", `{"path":"a.txt","revision":"--contents=` + secret + `"}`},
		{"enum_format", "log", `{"format":"--output=` + target + `"}`},
		{"enum_staged", "diff", `{"staged":"--output=` + target + `"}`},
		{"count_is_text", "log", `{"count":"1 --output=` + target + `"}`},
		{"path_outside", "diff", `{"paths":["` + secret + `"]}`},
		{"two_paths_outside", "diff", `{"paths":["` + secret + `","/dev/null"]}`},
		{"path_dotdot", "blame", `{"path":"../` + filepath.Base(outside) + `/secret"}`},
		{"path_magic", "log", `{"paths":[":(top,exclude)a.txt"],"format":"--patch"}`},
		{"path_etc", "blame", `{"path":"/etc/shadow"}`},
		{"range_regex", "blame", `{"path":"a.txt","lines":"/x/,-1 --contents=` + secret + `"}`},
		{"unknown_argument", "log", `{"output":"` + target + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			r, err := w.run(within(t, time.Minute), tt.tool, tt.args)
			said := ""
			for _, c := range r.Content {
				said += c.Text
			}
			if strings.HasPrefix(tt.name, "option_") && (sdk.KindOf(err) != sdk.Invalid || !strings.Contains(err.Error(), "would be an option of git")) {
				t.Errorf("%s, %v", said, err)
			}
			if strings.Contains(said, "TOPSECRET") || err != nil && strings.Contains(err.Error(), "TOPSECRET") {
				t.Errorf("read: %s, %v", said, err)
			}
			for _, file := range []string{target, filepath.Join(w.work, "written")} {
				if _, err := os.Lstat(file); err == nil {
					t.Errorf("%s was written", file)
				}
			}
		})
	}
}

// hostile are the ways in which a repository names programs that git runs.
var hostile = []struct{ name, config, attributes string }{
	{"fsmonitor", "[core]\n\tfsmonitor = EVIL\n", ""},
	{"hooks", "[core]\n\thooksPath = HOOKS\n", ""},
	{"pager", "[core]\n\tpager = EVIL\n[pager]\n\tlog = EVIL\n\tdiff = EVIL\n\tstatus = EVIL\n\tshow = EVIL\n\tblame = EVIL\n", ""},
	{"external_diff", "[diff]\n\texternal = EVIL\n", ""},
	{"diff_driver", "[diff \"d\"]\n\tcommand = EVIL\n", "* diff=d\n"},
	{"textconv", "[diff \"d\"]\n\ttextconv = EVIL\n", "* diff=d\n"},
	{"clean_filter", "[filter \"f\"]\n\tclean = EVIL\n\tsmudge = EVIL\n\trequired = true\n", "* filter=f\n"},
	{"process_filter", "[filter \"f\"]\n\tprocess = EVIL\n", "* filter=f\n"},
	{"gpg", "[gpg]\n\tprogram = EVIL\n[log]\n\tshowSignature = true\n", ""},
	{"alias", "[alias]\n\tlog = !EVIL\n\tstatus = !EVIL\n", ""},
	{"editor", "[core]\n\teditor = EVIL\n\tsshCommand = EVIL\n\taskPass = EVIL\n[sequence]\n\teditor = EVIL\n", ""},
	{"credential", "[credential]\n\thelper = !EVIL\n", ""},
	{"include", "[include]\n\tpath = SECRET\n", ""},
	{"worktree", "[core]\n\tworktree = OUTSIDE\n", ""},
	{"lazy_fetch", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\turl = ext::EVIL\n\tpromisor = true\n\tfetch = +refs/heads/*:refs/remotes/evil/*\n[protocol \"ext\"]\n\tallow = always\n", ""},
	{"alternate_ssh", "[url \"ext::EVIL\"]\n\tinsteadOf = https://\n", ""},
}

// A repository that asks git to run a program gets nothing done outside of the
// cage, and what the program prints is its own.
func TestGitHostileRepository(t *testing.T) { atLevels(t, testGitHostileRepository) }

func testGitHostileRepository(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			w := example(t, "git-readonly", l, report)
			repository(t, w)
			outside := place(t)
			secret := filepath.Join(outside, "secret")
			put(t, secret, "TOPSECRET\n", 0o644)
			marks := filepath.Join(outside, "marks")
			if err := os.Mkdir(marks, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(marks, 0o777); err != nil {
				t.Fatal(err)
			}
			evil, hooks := filepath.Join(w.work, "evil"), filepath.Join(w.work, "hooks")
			script := "#!/bin/sh\necho ran > " + marks + "/outside\necho ran > " + w.work + "/ran\necho ran > " + w.work + "/.git/ran\ncat " + secret + " $1\n"
			put(t, evil, script, 0o755)
			if err := os.Mkdir(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, h := range []string{"post-index-change", "fsmonitor-watchman", "reference-transaction"} {
				put(t, filepath.Join(hooks, h), script, 0o755)
			}
			text := strings.NewReplacer("EVIL", evil, "HOOKS", hooks, "SECRET", secret, "OUTSIDE", outside).Replace(tt.config)
			config := filepath.Join(w.work, ".git", "config")
			before, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			put(t, config, string(before)+text, 0o644)
			if tt.attributes != "" {
				put(t, filepath.Join(w.work, ".gitattributes"), tt.attributes, 0o644)
			}
			for tool, args := range map[string]string{"status": `{}`, "log": `{"format":"--patch"}`, "diff": `{}`, "show": `{}`, "blame": `{"path":"a.txt"}`} {
				w.t = t
				r, err := w.run(within(t, time.Minute), tool, args)
				said := ""
				for _, c := range r.Content {
					said += c.Text
				}
				if strings.Contains(said, "TOPSECRET") {
					t.Errorf("%s says what is outside: %s", tool, said)
				}
				if err != nil {
					t.Errorf("%s: %v", tool, err)
				}
			}
			for _, mark := range []string{marks + "/outside", w.work + "/ran", w.work + "/.git/ran"} {
				if _, err := os.Lstat(mark); err == nil {
					t.Errorf("a program of the repository wrote %s", mark)
				}
			}
		})
	}
}

func TestJQ(t *testing.T) { atLevels(t, testJQ) }

func testJQ(t *testing.T, l *sandbox.Launcher, report sandbox.Report) {
	w := example(t, "jq", l, report)
	outside := filepath.Join(place(t), "secret.json")
	put(t, outside, `"TOPSECRET"`, 0o644)
	for _, tt := range []struct{ name, args, want string }{
		{"pick", `{"filter":".a[] | {b}","value":{"a":[{"b":1,"c":2},{"b":"é"}]}}`, `[{"b":1},{"b":"é"}]`},
		{"array", `{"filter":"length","value":[1,2,3]}`, `[3]`},
		{"text", `{"filter":".","value":"-x"}`, `["-x"]`},
		{"comment", `{"filter":". # ]","value":1}`, `[1]`},
		{"option", `{"filter":"--rawfile x ` + outside + `","value":1}`, ``},
		{"breaks_out", `{"filter":"1] | {a: .} #","value":1}`, ``},
		{"module", `{"filter":"import \"` + strings.TrimSuffix(outside, ".json") + `\" as $x; $x","value":1}`, ``},
		{"bad_filter", `{"filter":".a[","value":1}`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			r, err := w.run(within(t, time.Minute), "query", tt.args)
			if got := string(r.Structured); tt.want != "" && (err != nil || got != tt.want) || strings.Contains(got, "TOPSECRET") {
				t.Errorf("%s, %v", got, err)
			}
			if tt.want == "" && tt.name != "breaks_out" && err == nil && !r.Failed {
				t.Errorf("%+v", r)
			}
		})
	}
}
