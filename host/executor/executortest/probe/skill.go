//go:build skill1 && wasip1

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/skillhost/skill/sdk"
)

// The imports are declared with numbers where a guest would write pointers, so
// that wrong ones can be tried.

//go:wasmimport skill start
func hostStart(ptr, n uint32) int32

//go:wasmimport skill wait
func hostWait(handles, n uint32, ms int32) int32

//go:wasmimport skill take
func hostTake(handle, off, buf, n uint32) int32

//go:wasmimport skill drop
func hostDrop(handle uint32) int32

//go:wasmimport skill emit
func hostEmit(kind int32, ptr, n uint32) int32

//go:wasmimport skill cancelled
func hostCancelled() int32

//go:wasmexport skill_abi_1
func abi1() {}

func main() {}

func at[T any](s []T) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(s)))) }

func emit(kind int32, b []byte) int32 { return hostEmit(kind, at(b), uint32(len(b))) }

//go:wasmexport skill_call
func skillCall() int32 {
	input, err := sdk.ParseFrame(take(0))
	var in sdk.Input
	if err == nil {
		err = json.Unmarshal(input.Header, &in)
	}
	if err != nil {
		return 100
	}
	if in.Describe {
		return emit(sdk.EmitResult, sdk.AppendError(nil, &sdk.Error{Kind: sdk.NotFound, What: "no describe"}))
	}
	var t task
	if err := json.Unmarshal(in.Args, &t); err != nil {
		return 101
	}
	header = in
	text := perform(t)
	if silent {
		return 0
	}
	b, err := sdk.AppendResult(nil, sdk.Text(text))
	if err != nil {
		return 102
	}
	emit(sdk.EmitResult, b)
	return status
}

var (
	header sdk.Input
	silent bool
	status int32
)

// take returns all of the frame of handle, or nil.
func take(handle uint32) []byte {
	n := hostTake(handle, 0, 0, 0)
	if n <= 0 {
		return nil
	}
	b := make([]byte, n)
	hostTake(handle, 0, at(b), uint32(n))
	return b
}

// start begins the operation name and returns its handle.
func start(name string) int32 {
	h, _ := json.Marshal(map[string]string{"op": name})
	b := sdk.AppendFrame(nil, h)
	return hostStart(at(b), uint32(len(b)))
}

// imports tries the imports of module skill.
func imports(verb string, a []string) (string, bool) {
	number := func(n int32) (string, bool) { return strconv.Itoa(int(n)), true }
	u := func(i int) uint32 {
		n, _ := strconv.ParseInt(a[i], 0, 64)
		return uint32(n)
	}
	switch verb {
	case "start":
		return number(hostStart(u(0), u(1)))
	case "wait":
		return number(hostWait(u(0), u(1), int32(u(2))))
	case "take":
		return number(hostTake(u(0), u(1), u(2), u(3)))
	case "drop":
		return number(hostDrop(u(0)))
	case "emit":
		return number(hostEmit(int32(u(0)), u(1), u(2)))
	case "begin":
		return number(start(a[0]))
	case "await":
		list := []uint32{u(0)}
		return number(hostWait(at(list), 1, int32(u(1))))
	case "fetch":
		f, err := sdk.ParseFrame(take(u(0)))
		return said(string(f.Header), err)
	case "op":
		return operation(a[0]), true
	case "handles":
		return handles(a[0])
	case "garbage":
		return number(emit(int32(u(0)), []byte(a[1])))
	}
	return outcomes(verb, a)
}

// outcomes tries what a call may end with.
func outcomes(verb string, a []string) (string, bool) {
	switch verb {
	case "mute":
		silent = true
	case "status":
		n, _ := strconv.Atoi(a[0])
		status = int32(n)
	case "reply":
		b, _ := sdk.AppendResult(nil, sdk.Text(a[0]))
		return strconv.Itoa(int(emit(sdk.EmitResult, b))), true
	case "error":
		emit(sdk.EmitResult, sdk.AppendError(nil, &sdk.Error{Kind: sdk.Kind(a[0]), What: a[1],
			Denial: &sdk.Denial{Layer: "operator", Allow: `filesystem = ["write:/"]`}}))
	case "log":
		b, _ := json.Marshal(map[string]string{"level": a[0], "message": a[1]})
		return strconv.Itoa(int(emit(sdk.EmitLog, b))), true
	case "patience":
		for hostCancelled() == 0 {
			list := []uint32{1}
			hostWait(at(list), 1, 10)
		}
		return "cancelled", true
	case "header":
		b, _ := json.Marshal(header.Env)
		return header.Tool + " " + string(b), true
	case "settings":
		return string(header.Settings), true
	default:
		return "", false
	}
	return "ok", true
}

// operation does one operation and returns the header of its reply.
func operation(name string) string {
	h := start(name)
	if h < 0 {
		return strconv.Itoa(int(h))
	}
	list := []uint32{uint32(h)}
	if n := hostWait(at(list), 1, -1); n < 0 {
		return strconv.Itoa(int(n))
	}
	if n := hostTake(uint32(h), 0, 0, 0); n < 0 {
		return strconv.Itoa(int(n))
	}
	f, err := sdk.ParseFrame(take(uint32(h)))
	hostDrop(uint32(h))
	s, _ := said(string(f.Header), err)
	return s
}

// handles starts operations until it cannot, keeping or dropping each.
func handles(how string) (string, bool) {
	var out strings.Builder
	for n := range 100_000 {
		h := start("slow")
		if h < 0 {
			fmt.Fprintf(&out, "%d after %d", h, n)
			break
		}
		if how == "drop" {
			hostDrop(uint32(h))
		}
	}
	return out.String(), true
}
