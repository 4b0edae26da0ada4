# Writes OUT: a C++ file that holds each of FILES as a string, by file name.
set(body "")
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text)
  string(APPEND body "    {\"${name}\", R\"~~~(${text})~~~\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"codegen/cuda/texts.h\"\n\nnamespace fusec::cuda {\nconst Text kTexts[] = {\n${body}    {nullptr, nullptr}};\n}\n")
