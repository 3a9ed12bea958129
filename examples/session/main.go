// Session holds a real conversation with "skill serve" over stdio, line by
// line, as an MCP client does, and prints it. It needs the binary's path:
//
//	go run ./examples/session bin/skill
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./examples/session PATH/TO/skill")
	}
	bin, err := filepath.Abs(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "skill-session-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := session(bin, dir); err != nil {
		log.Fatal(err)
	}
}

func session(bin, dir string) error {
	home, work := filepath.Join(dir, "home"), filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	if err := photo(filepath.Join(work, "photo.jpg")); err != nil {
		return err
	}
	env := append(os.Environ(), "SKILL_HOME="+home)
	skills := filepath.Join(home, "skills")
	for _, name := range []string{"hello-go", "review"} {
		if err := os.CopyFS(filepath.Join(skills, name), os.DirFS(filepath.Join("examples", name))); err != nil {
			return err
		}
	}
	title("Two installed skills are refused until somebody allows them")
	for _, name := range []string{"hello-go", "review"} {
		if err := command(env, bin, "allow", "--yes", name); err != nil {
			return err
		}
	}
	c, err := dial(env, bin, "serve", "--workspace", work)
	if err != nil {
		return err
	}
	if err := c.talk(work); err != nil {
		return errors.Join(err, c.close())
	}
	if err := c.close(); err != nil {
		return err
	}
	title("What the audit log kept of it")
	if err := command(env, bin, "audit", "tail", "-n", "14"); err != nil {
		return err
	}
	if err := command(env, bin, "audit", "verify"); err != nil {
		return err
	}
	title("Paste this into your MCP client's configuration")
	conf := map[string]any{"mcpServers": map[string]any{"skill": map[string]any{"command": bin, "args": []string{"serve", "--workspace", "/path/to/your/project"}}}}
	b, err := json.MarshalIndent(conf, "", "  ")
	fmt.Println(string(b))
	return err
}

// talk is the session itself.
func (c *client) talk(work string) error {
	title("An MCP client connects")
	if _, err := c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"session","version":"1"}}`); err != nil {
		return err
	}
	if err := c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return err
	}
	if _, err := c.call("tools/list", `{}`); err != nil {
		return err
	}
	for _, step := range []struct{ title, params string }{
		{"TaskManager: a list that outlives the session", `{"name":"TaskManager","arguments":{"action":"create","text":"Ship the corridor"}}`},
		{"", `{"name":"TaskManager","arguments":{"action":"add","text":"look at the photo"}}`},
		{"ReadImage: a photo of 12 megapixels", fmt.Sprintf(`{"name":"ReadImage","arguments":{"file_path":%q}}`, filepath.Join(work, "photo.jpg"))},
		{"ReadImage: a file outside of the workspace is denied, and the answer says how to allow it", `{"name":"ReadImage","arguments":{"file_path":"/etc/passwd"}}`},
		{"Bash: a shell in a cage of its own: it writes to the workspace and reaches nothing else",
			`{"name":"Bash","arguments":{"command":"echo notes > notes.txt && ls; echo mine > /etc/motd; ls ~/.ssh; id -u; ps ax | wc -l; exec 3<>/dev/tcp/127.0.0.1/22"}}`},
		{"InvokeSkill: a tool of an installed skill", `{"name":"InvokeSkill","arguments":{"skill_name":"hello-go","tool":"greet","parameters":{"name":"world"}}}`},
		{"InvokeSkill: a skill of instructions", `{"name":"InvokeSkill","arguments":{"skill_name":"review","arguments":"the last commit"}}`},
		{"Wrong arguments are explained to the model", `{"name":"TaskManager","arguments":{"action":"explode"}}`},
	} {
		if step.title != "" {
			title(step.title)
		}
		if _, err := c.call("tools/call", step.params); err != nil {
			return err
		}
	}
	return nil
}

type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

func dial(env []string, bin string, args ...string) (*client, error) {
	c := &client{cmd: exec.Command(bin, args...)}
	c.cmd.Env, c.cmd.Stderr = env, os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	return c, c.cmd.Start()
}

func (c *client) close() error {
	c.in.Close()
	return c.cmd.Wait()
}

func (c *client) send(line string) error {
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// call sends a request, prints both sides, and returns the answer.
func (c *client) call(method, params string) (json.RawMessage, error) {
	c.id++
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params)
	fmt.Println("→ " + short(line))
	if err := c.send(line); err != nil {
		return nil, err
	}
	for {
		answer, err := c.out.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		var m struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(answer, &m); err != nil {
			return nil, err
		}
		if m.ID == nil {
			continue // a notification
		}
		show(m.Result, answer)
		return m.Result, nil
	}
}

// show prints a result as a person would want to see it: texts as texts,
// images by their size, tools by their names.
func show(result json.RawMessage, answer []byte) {
	var r struct {
		Content []struct {
			Type, Text, MimeType string
			Data                 []byte
		}
		Tools []struct{ Name, Description string }
	}
	if json.Unmarshal(result, &r) != nil || len(r.Content)+len(r.Tools) == 0 {
		fmt.Println("← " + short(strings.TrimSpace(string(answer))))
		return
	}
	for _, t := range r.Tools {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Description), "\n")
		fmt.Printf("← tool %-14s %s\n", t.Name, short(first))
	}
	for _, c := range r.Content {
		if c.Type != "text" {
			fmt.Printf("← %s %s, %d bytes\n", c.Type, c.MimeType, len(c.Data))
			continue
		}
		for l := range strings.Lines(strings.TrimSpace(c.Text)) {
			fmt.Println("← " + strings.TrimRight(l, "\n"))
		}
	}
}

func command(env []string, bin string, args ...string) error {
	fmt.Println("$ skill " + strings.Join(args, " "))
	cmd := exec.Command(bin, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, os.Stdout, os.Stderr
	return cmd.Run()
}

func title(s string) { fmt.Printf("\n# %s\n", s) }

func short(s string) string {
	if r := []rune(s); len(r) > 160 {
		return string(r[:160]) + "…"
	}
	return s
}

// photo writes a JPEG of 4000 by 3000 pixels that looks like a sunset.
func photo(file string) error {
	img := image.NewRGBA(image.Rect(0, 0, 4000, 3000))
	for y := range 3000 {
		for x := range 4000 {
			sun := math.Exp(-(math.Pow(float64(x-2600), 2) + math.Pow(float64(y-1800), 2)) / 4e5)
			grain := uint8((x*7919 ^ y*104729) >> 3 & 7)
			img.SetRGBA(x, y, color.RGBA{uint8(70+y/25) + uint8(60*sun) + grain/2, uint8(40+y/40) + uint8(90*sun), uint8(110 - y/40), 255})
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(jpeg.Encode(f, img, &jpeg.Options{Quality: 90}), f.Close())
}
