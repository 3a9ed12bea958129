package wasm

import (
	"encoding/binary"

	"github.com/skillhost/skill/sdk"
)

// A guest is a module written by hand. Its imports come first, so function
// index len(imports)+i is funcs[i].
type guest struct {
	imports []imported
	memory  []byte // limits, as in the binary format; nil is one page
	table   []byte // element type and limits, or nil
	globals []byte // how many, and their types and initialisers; nil is none
	funcs   []function
	start   int // index of the start function; 0 is none
	data    []segment
	names   map[string][2]byte // further exports: kind and index
}

type imported struct {
	module, name string
	params       int // of type i32
	results      int
}

type function struct {
	export  string
	results int // of type i32
	locals  int // of type i32
	code    []byte
}

type segment struct {
	at    int32
	bytes []byte
}

// Opcodes and what goes with them.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opBr          = 0x0c
	opEnd         = 0x0b
	opCall        = 0x10
	opDrop        = 0x1a
	opReturn      = 0x0f
	opIf          = 0x04
	opEqual       = 0x46
	opGlobalSet   = 0x24
	opGrow        = 0x40
	void          = 0x40
)

// i32Const is the instruction that pushes n.
func i32Const(n int32) []byte {
	b := []byte{0x41}
	for {
		c := byte(n & 0x7f)
		n >>= 7
		if n == 0 && c&0x40 == 0 || n == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// call_ is the code that calls function f with args.
func call_(f byte, args ...int32) []byte {
	var b []byte
	for _, a := range args {
		b = append(b, i32Const(a)...)
	}
	return append(b, opCall, f)
}

func join(parts ...[]byte) (b []byte) {
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func vec(n int, items ...[]byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(n)), join(items...)...)
}

func str(s string) []byte { return vec(len(s), []byte(s)) }

func section(id byte, content []byte) []byte {
	return append([]byte{id}, vec(len(content), content)...)
}

func functype(params, results int) []byte {
	i32s := func(n int) []byte {
		b := vec(n)
		for range n {
			b = append(b, 0x7f)
		}
		return b
	}
	return join([]byte{0x60}, i32s(params), i32s(results))
}

// bytes encodes g. Every function has a type of its own.
func (g guest) bytes() []byte {
	var types, imports, funcs, code, exports, data [][]byte
	for i, f := range g.imports {
		types = append(types, functype(f.params, f.results))
		imports = append(imports, join(str(f.module), str(f.name), []byte{0}, vec(i)))
	}
	exports = append(exports, join(str("memory"), []byte{2, 0}))
	for i, f := range g.funcs {
		types = append(types, functype(0, f.results))
		funcs = append(funcs, vec(len(g.imports)+i))
		locals := []byte{0}
		if f.locals > 0 {
			locals = join([]byte{1}, vec(f.locals), []byte{0x7f})
		}
		body := join(locals, f.code, []byte{opEnd})
		code = append(code, vec(len(body), body))
		if f.export != "" {
			exports = append(exports, join(str(f.export), []byte{0}, vec(len(g.imports)+i)))
		}
	}
	for name, x := range g.names {
		exports = append(exports, join(str(name), x[:]))
	}
	for _, s := range g.data {
		data = append(data, join([]byte{0}, i32Const(s.at), []byte{opEnd}, vec(len(s.bytes), s.bytes)))
	}
	b := []byte("\x00asm\x01\x00\x00\x00")
	b = append(b, section(1, vec(len(types), types...))...)
	if len(imports) > 0 {
		b = append(b, section(2, vec(len(imports), imports...))...)
	}
	b = append(b, section(3, vec(len(funcs), funcs...))...)
	if g.table != nil {
		b = append(b, section(4, vec(1, g.table))...)
	}
	if g.memory == nil {
		g.memory = []byte{0, 1}
	}
	b = append(b, section(5, vec(1, g.memory))...)
	if g.globals != nil {
		b = append(b, section(6, g.globals)...)
	}
	b = append(b, section(7, vec(len(exports), exports...))...)
	if g.start != 0 {
		b = append(b, section(8, vec(g.start))...)
	}
	b = append(b, section(10, vec(len(code), code...))...)
	if len(data) > 0 {
		b = append(b, section(11, vec(len(data), data...))...)
	}
	return b
}

// The imports of module skill that tests use, in the order of their indices.
var skillImports = []imported{{"skill", "take", 4, 1}, {"skill", "emit", 3, 1}}

const (
	fnTake   = 0
	fnEmit   = 1
	atReply  = 1024
	atBuffer = 8192
)

// hello is the frame that replyHello emits.
var hello = func() []byte {
	frame, err := sdk.AppendResult(nil, sdk.Text("hello"))
	if err != nil {
		panic(err)
	}
	return frame
}()

// replyHello is code that reads the input, replies, and leaves the status.
var replyHello = join(
	call_(fnTake, 0, 0, atBuffer, 8192), []byte{opDrop},
	call_(fnEmit, sdk.EmitResult, atReply, int32(len(hello))),
)

// tiny is the smallest guest: skill_call is code, which leaves the status.
func tiny(code []byte) guest {
	return guest{
		imports: skillImports,
		funcs:   []function{{export: "skill_abi_1"}, {export: "skill_call", results: 1, locals: 1, code: code}},
		data:    []segment{{atReply, hello}},
	}
}

// undescribed is tiny, except that it answers the describe of Load with kind
// not_found.
func undescribed(code []byte) guest {
	notFound := sdk.AppendError(nil, &sdk.Error{Kind: sdk.NotFound, What: "no describe"})
	refuse := join(call_(fnEmit, sdk.EmitResult, 4096, int32(len(notFound))), []byte{opReturn})
	// The input begins {"tool":"": its byte 9 is a quote if there is no tool.
	g := tiny(join(
		call_(fnTake, 0, 0, atBuffer, 8192), []byte{opDrop},
		i32Const(atBuffer+4+9), []byte{0x2d, 0, 0}, i32Const('"'), []byte{opEqual, opIf, void}, refuse, []byte{opEnd},
		code,
	))
	g.data = append(g.data, segment{4096, notFound})
	return g
}
