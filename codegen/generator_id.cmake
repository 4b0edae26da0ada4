# Writes OUT: a C++ file with one SHA-256 over the contents of FILES, in order.
set(digests "")
foreach(file ${FILES})
  file(SHA256 ${file} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 id "${digests}")
file(WRITE ${OUT} "#include \"codegen/generator_id.h\"\n\nnamespace fusec {\nstd::string_view generator_id() { return \"${id}\"; }\n}\n")
