package extract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"
)

// PDFKey is the variable in whose presence this program is the reader of one
// PDF: see ReadPDF. It says how many seconds of CPU time that has.
const PDFKey = "SKILL_WEB_PDF"

// The bounds of reading a PDF.
const (
	pdfMemory = 256 << 20 // bytes beyond what an idle process has
	pdfPages  = 5000
	pdfText   = 8 << 20 // bytes
)

// patience is how long reading one may take.
type patience struct {
	cpu  int // seconds
	wall time.Duration
}

var standard = patience{6, 20 * time.Second}

// PDF returns the text of a document, page by page. A PDF is a program for a
// small machine and may be written by anybody, so it is read by a process of
// its own, with little memory and time: program with args runs ReadPDF.
func PDF(ctx context.Context, document []byte, program string, args ...string) (text string, pages int, err error) {
	return standard.read(ctx, document, program, args)
}

func (p patience) read(ctx context.Context, document []byte, program string, args []string) (text string, pages int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.wall)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{PDFKey + "=" + strconv.Itoa(p.cpu), "GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.Stdin = bytes.NewReader(document)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &capped{&out, pdfText + 1024}, &capped{&complaint, 4 << 10}
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", 0, errors.New("it takes too long to read")
		case errors.As(err, &exit) && exit.ExitCode() == exitWrong:
			return "", 0, errors.New(strings.TrimSpace(complaint.String()))
		case errors.As(err, &exit):
			return "", 0, errors.New("reading it takes more memory or time than it may")
		}
		return "", 0, fmt.Errorf("no process to read it with: %w", err)
	}
	head, text, ok := strings.Cut(out.String(), "\n")
	if _, err := fmt.Sscanf(head, "pages %d", &pages); err != nil || !ok {
		return "", 0, errors.New("its reader said nothing")
	}
	return text, pages, nil
}

// A capped writer takes no more than so many bytes.
type capped struct {
	b    *bytes.Buffer
	most int
}

func (c *capped) Write(p []byte) (int, error) {
	if c.b.Len()+len(p) > c.most {
		return 0, io.ErrShortWrite
	}
	return c.b.Write(p)
}

// exitWrong is how a reader exits that has said why it cannot read.
const exitWrong = 3

// ReadPDF reads a PDF from in and writes its text to out, and returns the exit
// status of the process, which does nothing else.
func ReadPDF(in io.Reader, out, complaint io.Writer) (status int) {
	debug.SetMaxStack(16 << 20)
	seconds, err := strconv.ParseUint(os.Getenv(PDFKey), 10, 16)
	if err == nil {
		err = bindPDF(seconds)
	}
	if err != nil {
		fmt.Fprintln(complaint, "no bounds for its reader:", err)
		return exitWrong
	}
	defer func() {
		if v := recover(); v != nil {
			fmt.Fprintln(complaint, "it is damaged")
			status = exitWrong
		}
	}()
	b, err := io.ReadAll(in)
	if err != nil {
		fmt.Fprintln(complaint, err)
		return exitWrong
	}
	text, pages, err := readPDF(b)
	if err != nil {
		fmt.Fprintln(complaint, err)
		return exitWrong
	}
	fmt.Fprintf(out, "pages %d\n%s", pages, text)
	return 0
}

func readPDF(b []byte) (string, int, error) {
	r, err := pdf.NewReader(bytes.NewReader(b), int64(len(b)))
	if errors.Is(err, pdf.ErrInvalidPassword) {
		return "", 0, errors.New("it is encrypted")
	}
	if err != nil {
		return "", 0, errors.New("it is damaged")
	}
	pages := r.NumPage()
	var text strings.Builder
	fonts := map[string]*pdf.Font{}
	for i := 1; i <= min(pages, pdfPages) && text.Len() < pdfText; i++ {
		p := r.Page(i)
		if p.V.IsNull() {
			continue
		}
		for _, name := range p.Fonts() {
			if _, ok := fonts[name]; !ok {
				f := p.Font(name)
				fonts[name] = &f
			}
		}
		s := pageText(p)
		if text.Len() > 0 {
			text.WriteString("\n")
		}
		text.WriteString(strings.TrimRight(strings.ToValidUTF8(s, "\uFFFD"), " \n") + "\n")
	}
	return strings.ToValidUTF8(text.String()[:min(text.Len(), pdfText)], ""), pages, nil
}

// Program returns how this program is started as the reader of a PDF.
func Program() (path string, args []string) { return "/proc/self/exe", os.Args[1:] }

// pageText puts the characters of a page into lines by where they are. A page
// that is damaged has what was there before the damage, which is nothing.
func pageText(p pdf.Page) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	var b strings.Builder
	var last pdf.Text
	for i, c := range p.Content().Text {
		size := max(c.FontSize, 1)
		switch down := last.Y - c.Y; {
		case i == 0:
		case down > 1.7*size || down < -1.7*size:
			b.WriteString("\n\n")
		case down > 0.5*size || down < -0.5*size:
			b.WriteString("\n")
		case c.X > last.X+gap(last, size) && last.S != " " && c.S != " ":
			b.WriteString(" ")
		}
		b.WriteString(c.S)
		if last = c; b.Len() > pdfText {
			break
		}
	}
	return b.String()
}

// gap is the distance from the beginning of c to that of the next character, if
// that is of another word.
func gap(c pdf.Text, size float64) float64 {
	if c.W == 0 { // of some fonts the widths are not known
		return 1.1 * size
	}
	return c.W + 0.15*size
}
