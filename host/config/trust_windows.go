package config

import (
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Rights with which a file or directory can be changed, or made changeable.
const changes = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.WRITE_DAC | windows.WRITE_OWNER | windows.DELETE | windows.GENERIC_WRITE | windows.GENERIC_ALL

// reads are the rights with which a file can be read.
const reads = windows.FILE_READ_DATA | windows.GENERIC_READ

// distrust says why f may hold what others wrote, or "": this user, the system
// or its administrators must own it, and nobody else may write it. There are
// no modes here.
func distrust(f *os.File, _ fs.FileMode) string { return others(f, changes, "write to") }

// exposed says why others may know what is in f, or "".
func exposed(f *os.File) string { return others(f, changes|reads, "read or change") }

// others says who else has any of the rights in f, or "".
func others(f *os.File, rights windows.ACCESS_MASK, what string) string {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return err.Error()
	}
	friends := []*windows.SID{user.User.Sid}
	for _, t := range []windows.WELL_KNOWN_SID_TYPE{windows.WinLocalSystemSid, windows.WinBuiltinAdministratorsSid, windows.WinCreatorOwnerSid} {
		sid, err := windows.CreateWellKnownSid(t)
		if err != nil {
			return err.Error()
		}
		friends = append(friends, sid)
	}
	friend := func(sid *windows.SID) bool {
		for _, f := range friends {
			if f.Equals(sid) {
				return true
			}
		}
		return false
	}
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return err.Error()
	}
	if owner, _, err := sd.Owner(); err != nil || !friend(owner) {
		return fmt.Sprintf("it belongs to another user, %v", owner)
	}
	dacl, _, err := sd.DACL()
	if err != nil || dacl == nil {
		return "it has no access list, so that everybody can write to it"
	}
	for i := range uint32(dacl.AceCount) {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &ace); err != nil {
			return err.Error()
		}
		switch {
		case ace.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE || ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0:
		case ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE:
			return "its access list has an entry of a kind that is not understood"
		case ace.Mask&rights != 0 && !friend((*windows.SID)(unsafe.Pointer(&ace.SidStart))):
			return fmt.Sprintf("%v can %s it", (*windows.SID)(unsafe.Pointer(&ace.SidStart)), what)
		}
	}
	return ""
}
